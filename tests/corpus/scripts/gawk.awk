# Counts by user and address; the daily reset is there, or not.
{ count[$1, $2, $3]++; bytes[$1 $2 $3] += $4 }
form == "steady" && NR % 1500 == 0 { delete count; delete bytes }
