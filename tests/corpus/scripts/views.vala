// Views of a feed. Each connects a closure to the feed's signal, and disconnects it when it is closed, or not.
class Feed : Object {
    public signal void updated(int number);
}

class View : Object {
    private string[] rows = {};
    private ulong handler;
    private unowned Feed feed;

    public View(Feed feed, Rand chance) {
        this.feed = feed;
        int count = chance.int_range(40, 120);
        for (int i = 0; i < count; ++i)
            rows += "row %d of %u: %s".printf(i, chance.next_int(), string.nfill(chance.int_range(5, 60), 'w'));
        int shown = 0;
        handler = feed.updated.connect((number) => { shown += rows[number % count].length; });
    }

    public void close() {
        feed.disconnect(handler);
    }
}

int main(string[] words) {
    bool leaks = words[1] == "leaks";
    var chance = new Rand.with_seed((uint32) int.parse(words[2]));
    var feed = new Feed();
    var open = new Queue<View>();
    Timeout.add(50 + chance.int_range(0, 40), () => {
        open.push_tail(new View(feed, chance));
        if (open.length > 250) {
            var oldest = open.pop_head();
            if (!leaks)
                oldest.close();
        }
        return true;
    });
    Timeout.add(500, () => { feed.updated(chance.int_range(0, 10000)); return true; });
    new MainLoop().run();
    return 0;
}
