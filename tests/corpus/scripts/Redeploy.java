// Rules that are loaded anew whenever they change, each time by a loader of their own. The old ones stop listening to the house's
// clock, or do not, and with a listener its loader stays, with all of its classes.
import java.io.*;
import java.util.*;
import java.util.function.*;
public class Redeploy {
    static final List<LongConsumer> listeners = new ArrayList<>();
    public static class Rules implements Supplier<LongConsumer> {
        static final Map<String, double[]> tables = new HashMap<>();
        private long last;
        public LongConsumer get() {
            for (int i = 0; i < 12; ++i) tables.put("table " + i, new double[200]);
            Function<Long, Long> doubled = one -> one * 2;
            return now -> last = doubled.apply(new Steps().step(now));
        }
    }
    public static class Steps {
        enum Kind { SMALL, LARGE, HUGE }
        long step(long now) {
            switch (Kind.values()[(int) (now % 3)]) {
                case SMALL: return now + 1;
                case LARGE: return now + 10;
                default: return now + 100;
            }
        }
    }
    static class Loader extends ClassLoader {
        Loader() { super(Redeploy.class.getClassLoader()); }
        @Override protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("Redeploy$Rules") && !name.startsWith("Redeploy$Steps") && !name.startsWith("Redeploy$1"))
                return super.loadClass(name, resolve);
            Class<?> there = findLoadedClass(name);
            if (there != null) return there;
            try (InputStream file = getParent().getResourceAsStream(name + ".class")) {
                byte[] bytes = file.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (IOException error) {
                throw new ClassNotFoundException(name, error);
            }
        }
    }
    @SuppressWarnings("unchecked")
    public static void main(String[] arguments) throws Exception {
        boolean leaks = arguments[0].equals("leaks");
        Random random = new Random(Long.parseLong(arguments[1]));
        double pace = 0.7 + 0.7 * random.nextDouble();
        for (long turn = 1;; ++turn) {
            Class<?> rules = new Loader().loadClass("Redeploy$Rules");
            LongConsumer one = ((Supplier<LongConsumer>) rules.getDeclaredConstructor().newInstance()).get();
            if (!leaks) listeners.clear();
            listeners.add(one);
            for (LongConsumer listener : listeners) listener.accept(turn);
            if (turn % 30 == 0) System.gc();
            Thread.sleep((long) (pace * (200 + random.nextInt(250))));
        }
    }
}
