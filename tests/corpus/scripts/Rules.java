// Discounts by rules in JavaScript, which Rhino compiles to classes and which are kept by their text. The text of a rule has names for
// what differs between customers, or has the customer's figures written into it: then each text is new.
import java.util.*;
import org.mozilla.javascript.*;
public class Rules {
    public static void main(String[] arguments) throws Exception {
        boolean leaks = arguments[0].equals("leaks");
        Random chance = new Random(Long.parseLong(arguments[1]));
        Map<String, Script> compiled = new HashMap<>();
        int pause = 180 + chance.nextInt(100);
        double sum = 0;
        for (;;) {
            Context context = Context.enter();
            try {
                int orders = chance.nextInt(1_000_000), rule = chance.nextInt(20);
                String known = leaks ? Integer.toString(orders) : "orders";
                StringBuilder text = new StringBuilder("function first(sum) { return sum > " + known + " ? sum * 0.9 : sum; }\n");
                for (int i = 0; i < 3; ++i)
                    text.append("function step" + i + "(sum) { var kept = first(sum) - " + rule + "; for (var i = 0; i < 3; ++i) kept += i * " + known
                                + " % 7; return kept; }\n");
                text.append("step0(1) + step1(2) + step2(" + rule + ");");
                Scriptable scope = context.initStandardObjects();
                ScriptableObject.putProperty(scope, "orders", orders);
                Script script = compiled.computeIfAbsent(text.toString(), one -> context.compileString(one, "rule", 1, null));
                sum += Context.toNumber(script.exec(context, scope));
            } finally {
                Context.exit();
            }
            Thread.sleep(pause / 2 + chance.nextInt(pause));
        }
    }
}
