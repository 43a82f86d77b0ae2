// An executor per task: shut down afterwards, or forgotten with its thread.
import java.util.*;
import java.util.concurrent.*;
public class Pools {
    public static void main(String[] arguments) throws Exception {
        Random random = new Random(Long.parseLong(arguments[1]));
        while (true) {
            ExecutorService pool = Executors.newFixedThreadPool(1);
            Future<Integer> answer = pool.submit(() -> new StringBuilder("x".repeat(random.nextInt(4000))).reverse().length());
            answer.get();
            if (arguments[0].equals("steady")) pool.shutdown();
            Thread.sleep(300 + random.nextInt(200));
        }
    }
}
