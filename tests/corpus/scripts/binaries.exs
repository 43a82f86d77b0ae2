# A collector of headers. Sixteen bytes cut from a packet keep the whole packet alive, unless they are copied.
[form, seed] = System.argv()
:rand.seed(:exsss, String.to_integer(seed))
Process.flag(:fullsweep_after, 10)
pause = 60 + :rand.uniform(50)

collect = fn collect, headers ->
  packets = for _ <- 1..4, do: :crypto.strong_rand_bytes(1000 + :rand.uniform(8000))
  cut = for packet <- packets, do: binary_part(packet, 100, 80)
  kept = if form == "steady", do: Enum.map(cut, &:binary.copy/1), else: cut
  Process.sleep(pause)
  headers = kept ++ headers
  collect.(collect, if(form == "steady", do: Enum.take(headers, 500), else: headers))
end

collect.(collect, [])
