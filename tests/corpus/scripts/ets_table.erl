%% An ETS table whose rows are deleted, or not.
-module(ets_table).
-export([start/1]).
start([Form, Seed]) ->
    rand:seed(exsss, list_to_integer(atom_to_list(Seed))),
    drive(Form, ets:new(rows, [ordered_set])).
drive(Form, Table) ->
    [ets:insert(Table, {{erlang:monotonic_time(), N}, lists:seq(1, 40 + rand:uniform(60))}) || N <- lists:seq(1, 4)],
    case Form of
        steady -> [ets:delete(Table, ets:first(Table)) || _ <- lists:seq(1, max(0, ets:info(Table, size) - 400))];
        _ -> ok
    end,
    timer:sleep(20 + rand:uniform(20)),
    drive(Form, Table).
