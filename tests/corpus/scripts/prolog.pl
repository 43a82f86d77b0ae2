% Facts about every request, retracted afterwards, or not.
:- dynamic seen/3.
run(Form, Seed) :- set_random(seed(Seed)), step(Form, 0).
step(Form, N) :-
    forall(between(1, 12, I), (random_between(1, 1000000000, Key), numlist(1, 25, List), assertz(seen(Key, I, List)))),
    ( Form == steady, N mod 50 =:= 0 -> retractall(seen(_, _, _)) ; true ),
    numlist(1, 2000, Long), sum_list(Long, _),
    sleep(0.03),
    N1 is N + 1,
    step(Form, N1).
