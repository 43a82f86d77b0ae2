# Keeps what each visitor has read since he came, for the page that he asks for: of twenty who are there, until it is shown, or of
# visitors who are new each time and never ask for it.
typeset -A read_by
integer shown=0
while read -r visitor page; do
  read_by[$visitor]+="$page "
  if ((${#read_by[$visitor]} > 20000)); then
    shown+=${#read_by[$visitor]}
    unset "read_by[$visitor]"
  fi
done
