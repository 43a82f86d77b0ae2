// Reports, each of whose two halves is made in a thread of a pool. The pool is shut down when the report is done, or not: then its threads
// wait for ever for more work.
import java.util.*;
import java.util.concurrent.*;
public class Executors {
    static int half(int seed) {
        Random chance = new Random(seed);
        List<String> lines = new ArrayList<>();
        for (int i = 0; i < 2000; ++i) lines.add("line " + chance.nextInt() + " of a report");
        return String.join("\n", lines).length();
    }
    public static void main(String[] arguments) throws Exception {
        boolean leaks = arguments[0].equals("leaks");
        Random chance = new Random(Long.parseLong(arguments[1]));
        int pause = 250 + chance.nextInt(200);
        for (;;) {
            ExecutorService pool = java.util.concurrent.Executors.newFixedThreadPool(2);
            Future<Integer> first = pool.submit(() -> half(chance.nextInt())), second = pool.submit(() -> half(chance.nextInt()));
            first.get();
            second.get();
            if (!leaks) pool.shutdown();
            Thread.sleep(pause / 2 + chance.nextInt(pause));
        }
    }
}
