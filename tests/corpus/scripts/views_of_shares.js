// Views of shares' prices by MobX: an autorun each, which is disposed of when its view closes, or not; the share's observers keep it then.
const { autorun, observable, runInAction } = require("mobx");
const [form, seed] = process.argv.slice(2);
let state = Number(seed) * 7919 + 1;
const chance = below => (state = (state * 48271) % 2147483647) % below;
const shares = Array.from({ length: 200 }, (_, i) => observable({ name: "share" + i, price: 100, history: [] }, { history: observable.ref }));
const open = [];
function openView() {
  const share = shares[chance(200)];
  const lines = Array.from({ length: 30 + chance(80) }, () => "note " + chance(1e9));
  let shown = "";
  const dispose = autorun(() => { shown = share.name + " " + share.price + " " + lines.length; });
  open.push({ dispose, shown: () => shown });
}
setInterval(() => {
  openView();
  if (open.length > 300) {
    const closed = open.shift();
    if (form === "steady") closed.dispose();
  }
}, 12 + 3 * Number(seed));
setInterval(() => runInAction(() => {
  const share = shares[chance(200)];
  share.price += chance(11) - 5;
  share.history = share.history.slice(-500).concat(share.price);
}), 20);
