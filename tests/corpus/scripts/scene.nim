## Built with --gc:arc, which counts references and has no collector of cycles: nodes know their parent. It is taken from
## them when the scene is left, or not.
import os, random, strutils

type
  Node = ref object
    name: string
    parent: Node
    children: seq[Node]

let leaks = paramStr(1) == "leaks"
var chance = initRand(parseInt(paramStr(2)))
let pause = 60 + chance.rand(50)

proc build(parent: Node, depth: int): Node =
  result = Node(name: "node " & $chance.rand(1_000_000) & " " & "x".repeat(chance.rand(120)), parent: parent)
  if depth > 0:
    for _ in 0 ..< 2 + chance.rand(3):
      result.children.add build(result, depth - 1)

proc leave(node: Node) =
  node.parent = nil
  for child in node.children:
    leave(child)

proc count(node: Node): int =
  result = 1
  for child in node.children:
    result += count(child)

var recent: seq[Node] # those that one may go back to

proc show(): int =
  let scene = build(nil, 3)
  result = count(scene)
  recent.add scene
  if recent.len > 120:
    if not leaks:
      leave(recent[0])
    recent.delete(0)

var shown = 0
while true:
  shown += show()
  sleep(pause)
