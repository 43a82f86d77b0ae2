// Subscribers of a static event that never unsubscribe.
using System;
using System.Threading;
class View {
    readonly byte[] data;
    public View(int size) { data = new byte[size]; }
    public void Changed(object sender, EventArgs e) { if (data.Length == 0) Console.WriteLine("empty"); }
}
static class Program {
    static event EventHandler Model;
    static void Main(string[] arguments) {
        var random = new Random(int.Parse(arguments[1]));
        while (true) {
            for (int i = 0; i < 3; ++i) {
                var view = new View(500 + random.Next(3000));
                Model += view.Changed;
                if (arguments[0] == "steady") Model -= view.Changed;
            }
            var churn = new string('x', random.Next(20000)).ToUpper();
            Thread.Sleep(40 + random.Next(20));
        }
    }
}
