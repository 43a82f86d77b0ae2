// A cache that removes its eldest entry, or keeps them all.
import java.util.*;
public class Cache {
    public static void main(String[] arguments) throws Exception {
        boolean leaks = arguments[0].equals("leaks");
        Random random = new Random(Long.parseLong(arguments[1]));
        Map<Long, byte[]> cache = new LinkedHashMap<>() {
            @Override protected boolean removeEldestEntry(Map.Entry<Long, byte[]> eldest) { return !leaks && size() > 200; }
        };
        while (true) {
            for (int i = 0; i < 10; ++i) cache.put(random.nextLong(), new byte[1000 + random.nextInt(6000)]);
            Thread.sleep(50);
        }
    }
}
