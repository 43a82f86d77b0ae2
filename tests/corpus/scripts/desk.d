// Screens that listen to a bus of delegates, under a garbage collector. They leave it when they close, or not.
import core.thread : Thread;
import core.time : msecs;
import std.algorithm : remove;
import std.array : replicate;
import std.conv : to;
import std.random : Random, uniform;

final class Bus
{
    private void delegate(int)[int] handlers;
    private int next;

    int subscribe(void delegate(int) handler)
    {
        handlers[++next] = handler;
        return next;
    }

    void unsubscribe(int id) { handlers.remove(id); }

    void send(int value)
    {
        foreach (handler; handlers.byValue)
            handler(value);
    }
}

final class Screen
{
    private string[] rows;
    private long shown;
    private int id;

    this(Bus bus, ref Random chance)
    {
        foreach (i; 0 .. uniform(20, 90, chance))
            rows ~= "row " ~ uniform(0, 1_000_000, chance).to!string ~ replicate("-", uniform(5, 60, chance));
        id = bus.subscribe((int value) { shown += rows[value % $].length; });
    }

    void close(Bus bus) { bus.unsubscribe(id); }
}

void main(string[] words)
{
    const leaks = words[1] == "leaks";
    auto chance = Random(words[2].to!uint);
    const pause = uniform(30, 60, chance).msecs;
    auto bus = new Bus;
    Screen[] open;
    for (int turn = 0;; ++turn)
    {
        open ~= new Screen(bus, chance);
        if (open.length > 20)
        {
            if (!leaks)
                open[0].close(bus);
            open = open.remove(0);
        }
        if (turn % 10 == 0)
            bus.send(uniform(0, 10_000, chance));
        Thread.sleep(pause);
    }
}
