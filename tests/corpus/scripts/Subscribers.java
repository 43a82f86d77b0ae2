// Pages that hear of price changes by Guava's EventBus. A page is unregistered when it closes, or not: then it hears on for ever.
import com.google.common.eventbus.*;
import java.util.*;
public class Subscribers {
    static class Page {
        final List<String> lines = new ArrayList<>();
        double last;
        @Subscribe public void changed(Double price) { last = price; }
    }
    public static void main(String[] arguments) throws Exception {
        boolean leaks = arguments[0].equals("leaks");
        long seed = Long.parseLong(arguments[1]);
        Random chance = new Random(seed);
        EventBus bus = new EventBus();
        Deque<Page> open = new ArrayDeque<>();
        for (int turn = 0;; ++turn) {
            Page page = new Page();
            for (int i = 0, count = 40 + chance.nextInt(150); i < count; ++i) page.lines.add("line " + i + " " + "words ".repeat(chance.nextInt(8)));
            bus.register(page);
            open.add(page);
            if (open.size() > 40) {
                Page closed = open.remove();
                if (!leaks) bus.unregister(closed);
            }
            if (turn % 10 == 0) bus.post(chance.nextDouble());
            Thread.sleep(25 + 6 * seed + chance.nextInt(20));
        }
    }
}
