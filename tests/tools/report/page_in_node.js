// Runs the script of a report's page without a browser: node page_in_node.js PAGE ACTION...
// Prints as JSON what the figures show at first and after each action:
//   click ID          an element of the page, by its id
//   read KEY PLACE    the mouse comes to a place of a plot's frame, 0 ... 1
//   leave KEY         the mouse leaves the plot
//   drag KEY FROM TO  the mouse drags from one place to another
//   tap KEY PLACE     a finger touches a place and is lifted
//   slide KEY FROM TO a finger is drawn from one place to another
// The environment variable STORED is what the browser has kept of an earlier page.
// The elements below know what the script asks of a browser's, and lay out nothing: user units are pixels.
'use strict';
const fs = require('fs'), vm = require('vm');
if (![].findLast) process.exit(77);  // older than Node.js 18

class Element {
  constructor(tag) {
    Object.assign(this, {tag, attributes: {}, childNodes: [], listeners: {}, style: {}, dataset: {}, parent: null});
    this.classList = {add() {}};
  }
  get children() { return this.childNodes.filter(node => node instanceof Element); }
  get textContent() { return this.childNodes.map(node => node instanceof Element ? node.textContent : node).join(''); }
  set textContent(text) { this.replaceChildren(text); }
  append(...nodes) {
    for (const node of nodes) {
      if (node instanceof Element) {
        if (node.parent) node.parent.childNodes = node.parent.childNodes.filter(other => other != node);
        node.parent = this;
      }
      this.childNodes.push(node);
    }
  }
  replaceChildren(...nodes) {
    this.children.forEach(child => child.parent = null);
    this.childNodes = [];
    this.append(...nodes);
  }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  addEventListener(name, listener) { this.listeners[name] = listener; }
  setPointerCapture() {}
  getScreenCTM() { return {inverse() {}}; }
  all(tag) { return this.children.flatMap(child => [...(child.tag == tag ? [child] : []), ...child.all(tag)]); }
  find(id) {
    if (this.attributes.id == id) return this;
    for (const child of this.children) {
      const found = child.find(id);
      if (found) return found;
    }
  }
}

const [page, ...actions] = process.argv.slice(2), text = fs.readFileSync(page, 'utf8');
const part = (before, after) => text.split(before)[1].split(after)[0];
const root = new Element('html'), explore = new Element('div'), curves = new Element('script'), legend = new Element('ul');
explore.setAttribute('id', 'explore');
curves.setAttribute('id', 'curves');
curves.append(part('id="curves">', '</script>'));
for (const _ of part('<ul class="legend">', '</ul>').matchAll('<li>')) legend.append(new Element('li'));
root.append(legend, explore, curves);

vm.runInNewContext(text.match(/<script nonce="\w+">(.*)<\/script>/s)[1], {
  document: {
    documentElement: root,
    getElementById: id => root.find(id),
    createElement: tag => new Element(tag),
    createElementNS: (space, tag) => new Element(tag),
    querySelectorAll: which => which == '.legend li' ? legend.children : [],
    addEventListener() {},
  },
  location: {pathname: page},
  sessionStorage: {getItem: () => process.env.STORED ?? null, setItem() {}},
  DOMPoint: class {
    constructor(x, y) { Object.assign(this, {x, y}); }
    matrixTransform() { return this; }
  },
}, {filename: 'report.js'});

const left = 74, right = 480;  // the frame, as in report.js
const send = (pointerType, key, name, place) => root.find('plot-' + key).listeners[name](
  {pointerType, pointerId: 1, button: 0, timeStamp: 1000, clientX: left + (right - left) * place, clientY: 100});
const draw = (pointerType, key, from, to) => {
  send(pointerType, key, 'pointerdown', from);
  send(pointerType, key, 'pointermove', to);
  send(pointerType, key, 'pointerup', to);
};
const act = {
  click: id => {
    const {listeners} = root.find(id);
    (listeners.click ?? listeners.change)({});
  },
  read: (key, place) => send('mouse', key, 'pointermove', place),
  leave: key => send('mouse', key, 'pointerleave', 1),
  drag: (key, from, to) => draw('mouse', key, from, to),
  // A finger that is lifted has left the plot.
  tap: (key, place) => ['pointerdown', 'pointerup', 'pointerleave'].forEach(name => send('touch', key, name, place)),
  slide: (key, from, to) => {
    draw('touch', key, from, to);
    send('touch', key, 'pointerleave', to);
  },
};

const texts = (figure, name) => figure.all('text').filter(text => text.attributes.class.startsWith(name));
const points = list => [...list.matchAll(/(-?[\d.]+),(-?[\d.]+)/g)].map(([, x, y]) => [+x, +y]);
const seen = () => explore.all('figure').map(figure => ({
  caption: figure.all('figcaption')[0].textContent,
  over: texts(figure, 'label x')[0].textContent,
  spoken: figure.all('svg')[0].attributes['aria-label'],
  lines: figure.all('path').map(path => points(path.attributes.d)),
  markers: figure.all('circle').length,
  bands: figure.all('polygon').map(polygon => points(polygon.attributes.points)),
  ends: texts(figure, 'end').sort((a, b) => a.attributes.y - b.attributes.y).map(text => text.textContent),
  ticks: texts(figure, 'tick y').map(text => text.textContent),
  values: figure.all('output')[0].textContent,
}));

const shown = [seen()];
for (let i = 0; i < actions.length;) {
  const name = actions[i], count = act[name].length;
  act[name](...actions.slice(i + 1, i + 1 + count));
  shown.push(seen());
  i += 1 + count;
}
console.log(JSON.stringify(shown));
