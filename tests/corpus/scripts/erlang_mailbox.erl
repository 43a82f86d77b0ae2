%% A process that is sent messages it has no clause for keeps them in its mailbox.
-module(erlang_mailbox).
-export([start/1]).
start([Form, Seed]) ->
    rand:seed(exsss, list_to_integer(atom_to_list(Seed))),
    Pid = spawn(fun() -> serve(Form) end),
    drive(Pid).
serve(leaks) -> receive {known, _} -> serve(leaks) end;
serve(Form) -> receive _ -> serve(Form) end.
drive(Pid) ->
    [Pid ! {unknown, N, lists:seq(1, 20 + rand:uniform(40))} || N <- lists:seq(1, 3)],
    Pid ! {known, lists:seq(1, 100)},
    timer:sleep(20 + rand:uniform(20)),
    drive(Pid).
