// H2 in memory. Statements with a result set stay open with all of their rows until somebody closes them.
import java.sql.*;
import java.util.*;
public class Orders {
    public static void main(String[] arguments) throws Exception {
        boolean leaks = arguments[0].equals("leaks");
        Random random = new Random(Long.parseLong(arguments[1]));
        int pause = 180 + random.nextInt(120);
        Connection connection = DriverManager.getConnection("jdbc:h2:mem:orders");
        connection.createStatement().execute("create table orders(id int primary key, text varchar)");
        try (PreparedStatement insert = connection.prepareStatement("insert into orders values(?, ?)")) {
            for (int i = 0; i < 2000; ++i) {
                insert.setInt(1, i);
                insert.setString(2, "order " + random.nextLong());
                insert.execute();
            }
        }
        List<ResultSet> open = new ArrayList<>();  // of a pool that means to close them
        while (true) {
            Statement statement = connection.createStatement();
            ResultSet rows = statement.executeQuery("select id, text || '" + random.nextInt() + "' from orders where id >= " + random.nextInt(1000) + " limit 900");
            rows.next();
            if (leaks) open.add(rows);
            else statement.close();
            Thread.sleep(pause);
        }
    }
}
