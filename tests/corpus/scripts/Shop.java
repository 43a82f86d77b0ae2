// Tomcat in a program: a servlet that puts a basket into the session, which ends after some seconds or not at all.
import java.io.*;
import java.util.*;
import javax.servlet.http.*;
import org.apache.catalina.*;
import org.apache.catalina.startup.Tomcat;
public class Shop {
    public static void main(String[] arguments) throws Exception {
        boolean leaks = arguments[0].equals("leaks");
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(new File(".").getAbsolutePath());
        tomcat.setPort(Integer.parseInt(arguments[2]));
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        tomcat.getConnector().setProperty("maxThreads", "8");
        Context context = tomcat.addContext("", new File(".").getAbsolutePath());
        context.setBackgroundProcessorDelay(1);
        ((org.apache.catalina.session.StandardManager) manager(context)).setPathname(null);
        Tomcat.addServlet(context, "shop", new HttpServlet() {
            @Override protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
                HttpSession session = request.getSession(true);
                session.setMaxInactiveInterval(leaks ? -1 : 3);
                List<String> basket = new ArrayList<>();
                for (int i = 0; i < 110; ++i) basket.add("article " + i + " for " + request.getRequestURI());
                session.setAttribute("basket", basket);
                response.getWriter().println(basket.size());
            }
        });
        context.addServletMappingDecoded("/*", "shop");
        tomcat.start();
        tomcat.getServer().await();
    }
    static Manager manager(Context context) {
        Manager one = new org.apache.catalina.session.StandardManager();
        ((org.apache.catalina.session.StandardManager) one).setProcessExpiresFrequency(1);
        context.setManager(one);
        return one;
    }
}
