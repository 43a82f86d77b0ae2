// GNOME's JavaScript: a model of what was played, as a window would show it. It is cut to its last 200 rows, or not.
const { GLib, GObject, Gio } = imports.gi;
const [form, seed] = ARGV;
let state = Number(seed);
const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
const Row = GObject.registerClass({
    Properties: {
        title: GObject.ParamSpec.string("title", "", "", GObject.ParamFlags.READWRITE, ""),
        text: GObject.ParamSpec.string("text", "", "", GObject.ParamFlags.READWRITE, ""),
    },
}, class Row extends GObject.Object {});
const model = new Gio.ListStore({ item_type: Row.$gtype });
GLib.timeout_add(GLib.PRIORITY_DEFAULT, 20 + Math.floor(20 * random()), () => {
    model.append(new Row({ title: `title ${random()}`, text: "words ".repeat(Math.floor(100 + 600 * random())) }));
    if (form === "steady" && model.get_n_items() > 200)
        model.splice(0, 50, []);
    return GLib.SOURCE_CONTINUE;
});
new GLib.MainLoop(null, false).run();
