# Remembers what programs have answered, by their words: up to 300 answers, then it begins anew; or all.
zmodload zsh/zselect
form=$1
RANDOM=$2
typeset -A answers
integer pause=$(( 2 + RANDOM % 3 ))
while true; do
  words=(program --option=$RANDOM$RANDOM --file=/path/$RANDOM)
  answer=()
  for (( i = 0; i < 40 + RANDOM % 60; ++i )); do answer+=("$RANDOM: description of option $i of $words[2]"); done
  answers[${(j: :)words}]=${(F)answer}
  if [[ $form == steady ]] && (( ${#answers} > 300 )); then answers=(); fi
  zselect -t $pause
done
