// A till with a database in memory, HSQLDB. Its questions are prepared with their numbers in the text, and closed, or not: the session
// keeps each until it ends.
import java.sql.*;
import java.util.Random;
public class Statements {
    public static void main(String[] arguments) throws Exception {
        boolean leaks = arguments[0].equals("leaks");
        long seed = Long.parseLong(arguments[1]);
        Random chance = new Random(seed);
        Connection connection = DriverManager.getConnection("jdbc:hsqldb:mem:till", "SA", "");
        try (Statement setup = connection.createStatement()) {
            setup.execute("create table orders (id int primary key, customer varchar(60), amount decimal(10, 2))");
            for (int i = 0; i < 1000; ++i) setup.execute("insert into orders values (" + i + ", 'customer " + i % 70 + "', " + i * 3 % 500 + ")");
        }
        double total = 0;
        for (;;) {
            String text = "select customer, sum(amount) from orders where id > " + chance.nextInt(1000) + " and amount < " + chance.nextInt(1_000_000)
                          + " and customer <> 'customer " + chance.nextInt(70) + "' group by customer order by 2 desc limit 5";
            PreparedStatement question = connection.prepareStatement(text);
            ResultSet found = question.executeQuery();
            while (found.next()) total += found.getDouble(2);
            found.close();
            if (!leaks) question.close();
            Thread.sleep(20 + 5 * seed + chance.nextInt(30));
        }
    }
}
