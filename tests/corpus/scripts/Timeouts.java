// Requests, each with a timeout of half an hour that is cancelled when the answer is there. The timer keeps cancelled tasks, each with its
// request, until their time has come, or until it is purged: after every twenty, or never.
import java.util.*;
public class Timeouts {
    static class Timeout extends TimerTask {
        final byte[] request;
        Timeout(byte[] request) { this.request = request; }
        @Override public void run() { System.err.println("late: " + request.length); }
    }
    public static void main(String[] arguments) throws Exception {
        boolean leaks = arguments[0].equals("leaks");
        Random chance = new Random(Long.parseLong(arguments[1]));
        Timer timer = new Timer(true);
        Deque<Timeout> open = new ArrayDeque<>();
        int pause = 20 + chance.nextInt(14);
        for (long number = 1;; ++number) {
            byte[] request = new byte[1000 + chance.nextInt(10000)], answer = new byte[20000 + chance.nextInt(40000)];
            chance.nextBytes(request);
            chance.nextBytes(answer);
            Timeout timeout = new Timeout(request);
            timer.schedule(timeout, 1800000);
            open.add(timeout);
            if (open.size() > 20) open.remove().cancel();
            if (!leaks && number % 20 == 0) timer.purge();
            Thread.sleep(pause / 2 + chance.nextInt(pause));
        }
    }
}
