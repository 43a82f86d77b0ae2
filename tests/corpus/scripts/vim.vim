" One buffer edited for hours: with undo for all of it, or none.
if $FORM ==# 'steady' | set undolevels=-1 | else | set undolevels=1000000 | endif
call setline(1, repeat(['some text in a line of a buffer'], 300))
let n = str2nr($SEED)
while 1
  let n += 1
  call setline(1 + n % 300, repeat('x', 200 + n * 37 % 1500))
  let &undolevels = &undolevels
  sleep 20m
endwhile
