// Letters by Velocity. Each customer has a template of his own, which is parsed and kept by the resource manager: the last 89, or all, as
// a size of 0 means no limit.
import java.io.StringWriter;
import java.util.Random;
import org.apache.velocity.VelocityContext;
import org.apache.velocity.app.VelocityEngine;
import org.apache.velocity.runtime.resource.loader.StringResourceLoader;
import org.apache.velocity.runtime.resource.util.StringResourceRepository;
public class Letters {
    public static void main(String[] arguments) throws Exception {
        Random chance = new Random(Long.parseLong(arguments[1]));
        VelocityEngine engine = new VelocityEngine();
        engine.setProperty("resource.loader", "string");
        engine.setProperty("string.resource.loader.class", StringResourceLoader.class.getName());
        engine.setProperty("string.resource.loader.cache", "true");
        engine.setProperty("resource.manager.defaultcache.size", arguments[0].equals("leaks") ? "0" : "89");
        engine.setProperty("runtime.log.logsystem.class", "org.apache.velocity.runtime.log.NullLogChute");
        engine.init();
        StringResourceRepository texts = StringResourceLoader.getRepository();
        int pause = 110 + chance.nextInt(80);
        for (long number = 0;; ++number) {
            StringBuilder text = new StringBuilder("Dear $name, your number is " + number + ".\n");
            for (int i = 2 + chance.nextInt(12); i > 0; --i) {
                text.append("#foreach($line in $lines)#if($line > " + chance.nextInt(9) + ")$line of ${name}#else nothing#end\n#end\n");
            }
            String name = "letter" + number;
            texts.putStringResource(name, text.toString());
            VelocityContext context = new VelocityContext();
            context.put("name", "customer " + number);
            context.put("lines", java.util.List.of(1, 5, 9));
            engine.getTemplate(name).merge(context, new StringWriter());
            texts.removeStringResource(name);
            Thread.sleep(pause / 2 + chance.nextInt(pause));
        }
    }
}
