// Requests, each with a timeout of half an hour that is cancelled when the answer is there. A cancelled task is removed from the queue,
// or, as is the default, waits there until its time has come, with its request.
import java.util.*;
import java.util.concurrent.*;
public class Timeouts {
    public static void main(String[] arguments) throws Exception {
        Random chance = new Random(Long.parseLong(arguments[1]));
        ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1);
        timer.setRemoveOnCancelPolicy(arguments[0].equals("steady"));
        Deque<ScheduledFuture<?>> open = new ArrayDeque<>();
        int pause = 12 + chance.nextInt(10);
        long[] late = {0};
        for (;;) {
            byte[] request = new byte[1000 + chance.nextInt(8000)];
            chance.nextBytes(request);
            open.add(timer.schedule(() -> late[0] += request.length, 30, TimeUnit.MINUTES));
            if (open.size() > 20) open.remove().cancel(false);
            Thread.sleep(pause / 2 + chance.nextInt(pause));
        }
    }
}
