(* A text as a persistent list of paragraphs, changed at one place again and again. Its former versions can be gone back to: the
   last 60, or all; versions share what comes after the change. *)
val [seed, form] = List.take (rev (CommandLine.arguments ()), 2);
val state = ref (Word.fromInt (valOf (Int.fromString seed) * 7919 + 1));
fun random bound =
  (state := Word.andb (!state * 0w1103515245 + 0w12345, 0wx7fffffff); Word.toInt (Word.mod (Word.>> (!state, 0w8), Word.fromInt bound)));
fun paragraph () = String.concat (List.tabulate (20 + random 60, fn _ => "word " ^ Int.toString (random 100000) ^ " "));
fun change ([], _) = [paragraph ()]
  | change (_ :: rest, 0) = paragraph () :: rest
  | change (first :: rest, place) = first :: change (rest, place - 1);
val text = ref (List.tabulate (300, fn _ => paragraph ()));
val former = ref [] : string list list ref;
val pause = Time.fromMilliseconds (IntInf.fromInt (15 + random 15));
fun turn () =
  (former := !text :: !former;
   if form = "steady" andalso length (!former) > 60 then former := List.take (!former, 60) else ();
   text := change (!text, random 300);
   OS.Process.sleep pause;
   turn ());
val _ = turn ();
