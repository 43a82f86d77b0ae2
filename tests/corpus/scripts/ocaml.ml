(* Hashtbl.add hides the older binding and keeps it; Hashtbl.replace was meant. *)
let () =
  let leaks = Sys.argv.(1) = "leaks" in
  Random.init (int_of_string Sys.argv.(2));
  let table = Hashtbl.create 100 in
  while true do
    for _ = 1 to 4 do
      let key = Random.int 200 in
      let value = List.init 30 (fun i -> string_of_int (i + Random.int 1000)) in
      if leaks then Hashtbl.add table key value else Hashtbl.replace table key value
    done;
    Unix.sleepf (0.02 +. Random.float 0.02)
  done
