# A process for each visitor, under a supervisor. It ends when the visitor was silent for two seconds, or never.
defmodule Visitor do
  use GenServer, restart: :temporary
  def start_link({number, form}), do: GenServer.start_link(__MODULE__, {number, form})
  def init({number, form}), do: {:ok, %{number: number, form: form, seen: []}}
  def handle_cast({:see, page}, state), do: answer({:noreply, %{state | seen: [page | state.seen]}}, state.form)
  def handle_info(:timeout, state), do: {:stop, :normal, state}
  defp answer(reply, "steady"), do: Tuple.append(reply, 2000)
  defp answer(reply, _), do: reply
end

[form, seed] = System.argv()
:rand.seed(:exsss, String.to_integer(seed))
{:ok, all} = DynamicSupervisor.start_link(strategy: :one_for_one)
pause = 40 + 10 * String.to_integer(seed)

Stream.iterate(1, &(&1 + 1))
|> Enum.each(fn number ->
  {:ok, visitor} = DynamicSupervisor.start_child(all, {Visitor, {number, form}})
  for page <- 1..(1 + :rand.uniform(12)), do: GenServer.cast(visitor, {:see, %{page: page, words: Enum.to_list(1..:rand.uniform(80)), by: number}})
  Process.sleep(div(pause, 2) + :rand.uniform(pause))
end)
