// Rules that users write, compiled by GroovyShell: each text once, or again at every use, with its class kept by the log.
def (form, seed) = [args[0], args[1] as long]
def random = new Random(seed)
def pause = 200 + random.nextInt(150)
def compiled = [:], log = []
while (true) {
  def number = random.nextInt(20)
  def text = "def f(x) { x * ${number} + 1 }; def g(x) { [x, f(x)].collect { it + ${number} } }; g(${number}).sum()"
  def rule = form == "steady" ? compiled.computeIfAbsent(number) { new GroovyShell().parse(text) } : new GroovyShell().parse(text)
  rule.run()
  if (form == "leaks") log << rule
  Thread.sleep(pause)
}
