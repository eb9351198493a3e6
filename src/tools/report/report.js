// The curves of a report, to explore: which plots, over what, which runs, which part. It draws what
// report_curves.h describes, as svg_plot() does for readers without a script.
'use strict';
(() => {
  const data = JSON.parse(document.getElementById('curves').textContent);
  const root = document.documentElement, host = document.getElementById('explore');
  const left = 74, right = 480, top = 14, bottom = 276, width = 560, height = 330;  // user units, as in svg_plot.cpp

  // ---- The reader's choices, which outlive a reload of the page.

  const place = 'dgc report ' + location.pathname;
  // plots: those that are shown although they were not at first, or hidden although they were shown.
  const state = {x: data.axes[0].key, plots: [], hidden: [], smooth: null, zoom: null, open: [], focus: ''};
  try {
    Object.assign(state, JSON.parse(sessionStorage.getItem(place)));
  } catch { /* A browser may keep nothing for files. */ }
  const save = () => {
    try {
      sessionStorage.setItem(place, JSON.stringify(state));
    } catch { /* Then a reload begins anew. */ }
  };
  const smoothing = () => state.smooth ?? data.smoothing;  // until the reader has chosen, what suits the runs' length
  const axis = () => data.axes.find(a => a.key == state.x) ?? data.axes[0];
  const toggle = (list, what) => list.includes(what) ? list.filter(x => x != what) : [...list, what];
  const drawn = plot => plot.shown != state.plots.includes(plot.key);
  const seen = () => data.runs.filter(run => !state.hidden.includes(run.name));

  // ---- Elements.

  const fill = (element, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) {
      if (typeof value == 'function') element.addEventListener(name, value);
      else if (value !== false) element.setAttribute(name, value === true ? '' : value);
    }
    element.append(...children);
    return element;
  };
  const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes = {}, ...children) =>
    fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

  // ---- Scales: to() makes a value a place along an axis, from() undoes it, and ticks are values between two places.

  const short = v => {
    const size = Math.abs(v);
    return size != 0 && (size < 1e-4 || size >= 1e7) ? v.toExponential(1).replace('e+', 'e') : String(+v.toPrecision(4));
  };
  const percent = v => +(100 * v).toPrecision(4) + ' %';
  const bytes = v => {
    v = +v.toPrecision(9);  // 20 that comes from a place on a log axis may be 20.000000000000004
    const unit = Math.max(0, Math.min(4, Math.floor(Math.log2(v) / 10)));
    const n = v / 2 ** (10 * unit);
    return (n == Math.round(n) ? n : n.toFixed(n < 10 ? 2 : n < 100 ? 1 : 0)) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB'][unit];
  };
  const time = s => s < 120 ? +s.toPrecision(3) + ' s' : s < 7200 ? +(s / 60).toPrecision(3) + ' min'
                                                                  : +(s / 3600).toPrecision(3) + ' h';
  const even = (low, high, unit = 1) => {
    const rough = (high - low) / unit / 5, power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find(n => n * power >= rough * 0.999);
    const ticks = [];
    for (let n = Math.ceil(low / unit / step - 1e-6); n * step * unit <= high + 1e-6 * step * unit; ++n) {
      ticks.push(n * step * unit);
    }
    return ticks;
  };
  const powers = (base, low, high) => {
    const stride = Math.max(1, Math.ceil((high - low) / 6)), ticks = [];
    for (let n = Math.ceil(low - 1e-6); n <= high + 1e-6; n += stride) ticks.push(base ** n);
    return ticks.length > 2 ? ticks : null;
  };
  const oneTwoFive = (low, high) => {  // along an axis of less than three powers of ten
    const ticks = [];
    for (let n = Math.floor(low); n <= high; ++n) {
      for (const v of [1, 2, 5]) ticks.push(v * 10 ** n);
    }
    const inside = ticks.filter(v => v >= 10 ** low * (1 - 1e-9) && v <= 10 ** high * (1 + 1e-9));
    return inside.length > 2 ? inside : null;
  };
  const same = v => v;
  const scales = {
    linear: {to: same, from: same, text: short, ticks: even},
    percent: {to: same, from: same, text: percent, ticks: even},
    time: {to: same, from: same, text: time,
           ticks: (low, high) => even(low, high, high < 120 ? 1 : high < 7200 ? 60 : 3600)},
    log: {to: Math.log10, from: t => 10 ** t, text: short, ticks: (low, high) => powers(10, low, high) ?? oneTwoFive(low, high) ?? even(10 ** low, 10 ** high)},
    bytes: {to: Math.log2, from: t => 2 ** t, text: bytes, 
            ticks: (low, high) => powers(2, low, high) ?? even(2 ** low, 2 ** high, 1024 ** Math.max(0, Math.floor(low / 10)))},
    sparsity: {to: v => -Math.log10(Math.max(1e-9, 1 - v)), from: t => 1 - 10 ** -t,
               text: v => +(100 * v).toPrecision(7) + ' %',
               ticks: (low, high) => [0, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999].filter(
                 v => -Math.log10(1 - v) >= low - 1e-6 && -Math.log10(1 - v) <= high + 1e-6)},
  };
  const range = values => {
    let low = Infinity, high = -Infinity;
    for (const v of values) {
      if (!Number.isFinite(v)) continue;
      low = Math.min(low, v);
      high = Math.max(high, v);
    }
    return low <= high ? [low, high] : null;
  };

  // ---- Curves.

  // The mean of the numbers at most `half` places away.
  const smoothed = (values, half) => half == 0 ? values : values.map((value, i) => {
    if (value === null) return null;
    const near = values.slice(Math.max(0, i - half), i + half + 1).filter(v => v !== null);
    return near.reduce((sum, v) => sum + v, 0) / near.length;
  });

  const along = (scale, values) => values.map(v => {
    const t = v === null ? NaN : scale.to(v);
    return Number.isFinite(t) ? t : NaN;
  });

  // The curves of a plot as places: x and y along the two axes, NaN where there is no value.
  const curvesOf = plot => plot.curves.filter(curve => seen().includes(data.runs[curve.run])).map(curve => {
    const run = data.runs[curve.run], half = plot.smooth ? +smoothing() : 0;
    const list = values => values && along(scales[plot.kind], smoothed(values, half));
    return {run, x: along(scales[axis().kind], run[curve.at][state.x]), y: list(curve.y), low: list(curve.low), high: list(curve.high)};
  });

  // ---- The part of the x axis that all figures show.

  const whole = () => {
    const ends = range(seen().flatMap(run => run.steps[state.x]).filter(v => v !== null).map(scales[axis().kind].to));
    const low = axis().kind == 'bytes' ? ends?.[0] ?? 0 : 0, high = ends?.[1] ?? 1;
    return high > low ? [low, high] : [low, low + 1];
  };
  const shown = () => state.zoom ?? whole();
  const zoomTo = (a, b) => {
    const [low, high] = whole(), least = (high - low) / 1000;
    let from = Math.max(low, Math.min(a, b)), to = Math.min(high, Math.max(a, b));
    if (to - from < least) [from, to] = [(from + to - least) / 2, (from + to + least) / 2];
    state.zoom = from <= low && to >= high ? null : [from, to];
    update();
  };
  const zoomOut = () => {
    state.zoom = null;
    update();
  };

  // ---- Figures.

  class Figure {
    constructor(plot) {
      this.plot = plot;
      this.values = html('span');
      this.svg = svg('svg', {class: 'plot', viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: 'slider', id: 'plot-' + plot.key,
                             'aria-valuemin': 0, 'aria-valuemax': 100, 'aria-valuenow': 0, 'aria-valuetext': 'nothing read yet', keydown: e => this.key(e),
                             pointerdown: e => this.down(e), pointermove: e => this.move(e), pointerup: e => this.up(e),
                             pointercancel: () => this.drop(), pointerleave: e => e.pointerType == 'mouse' && this.point(null),
                             blur: () => this.point(null)});
      this.title = html('figcaption');
      this.element = html('figure', {}, this.title, html('output', {}, this.values), this.svg);
      this.fingers = new Map();
      this.tapped = 0;
    }

    px(t) { return left + (t - this.from) / (this.to - this.from) * (right - left); }
    py(t) { return bottom - Math.max(-0.2, Math.min(1.2, (t - this.low) / (this.high - this.low))) * (bottom - top); }
    at(px) { return this.from + (px - left) / (right - left) * (this.to - this.from); }

    draw() {
      const {kind} = this.plot, curves = curvesOf(this.plot);
      [this.from, this.to] = shown();
      this.curves = curves;
      this.scale = scales[kind];
      // The bands of seeds count, and the noise of one run's steps does not: it would make the curve flat.
      const covered = curve => curve.low && curve.run.seeds > 1 ? [curve.y, curve.low, curve.high] : [curve.y];
      const inside = curve => covered(curve).flatMap(
        values => values.filter((_, i) => curve.x[i] >= this.from - 1e-9 && curve.x[i] <= this.to + 1e-9));
      const [low, high] = range(curves.flatMap(inside)) ?? range(curves.flatMap(c => c.y)) ?? [0, 1];
      const pad = high > low ? (high - low) * 0.05 : Math.abs(high) * 0.1 || 0.5;
      const share = kind == 'percent';
      this.low = kind == 'sparsity' && !state.zoom ? 0 : share ? Math.max(0, low - pad) : low - pad;
      this.high = share ? Math.min(Math.max(1, high), high + pad) : high + pad;
      this.title.textContent = this.plot.caption;
      this.svg.setAttribute('aria-label', `${this.plot.caption} over ${axis().name}`);
      const inner = svg('svg', {x: left - 4, y: top - 4, width: right - left + 8, height: bottom - top + 8,
                                viewBox: `${left - 4} ${top - 4} ${right - left + 8} ${bottom - top + 8}`});
      const behind = [...curves].reverse();  // the first run is what the page is about: nothing is drawn over it
      inner.append(...behind.map(c => this.band(c)), ...behind.map(c => this.line(c)),
                   ...behind.flatMap(c => this.marker(c)));
      this.selection = svg('rect', {class: 'selection', y: top, height: bottom - top, visibility: 'hidden'});
      this.cursor = svg('line', {class: 'cursor', y1: top, y2: bottom});
      this.svg.replaceChildren(...this.axes(), inner, ...this.ends(), this.selection, this.cursor);
      this.point(null);  // what was read belongs to the drawing before
      if (!curves.some(c => inside(c).some(Number.isFinite))) {
        this.svg.append(svg('text', {class: 'empty', x: (left + right) / 2, y: (top + bottom) / 2}, 'no data here'));
      }
    }

    axes() {
      const all = [], x = scales[axis().kind];
      for (const value of this.scale.ticks(this.low, this.high)) {
        const y = this.py(this.scale.to(value));
        all.push(svg('line', {class: 'grid', x1: left, x2: right, y1: y, y2: y}),
                 svg('text', {class: 'tick y', x: left - 8, y, dy: '.35em'}, this.scale.text(value)));
      }
      for (const value of x.ticks(this.from, this.to)) {
        const at = this.px(x.to(value));
        all.push(svg('line', {class: 'axis', x1: at, x2: at, y1: bottom, y2: bottom + 5}),
                 svg('text', {class: 'tick x', x: at, y: bottom + 21}, x.text(value)));
      }
      all.push(svg('line', {class: 'axis', x1: left, x2: right, y1: bottom, y2: bottom}),
               svg('text', {class: 'label x', x: (left + right) / 2, y: height - 9}, axis().name));
      return all;
    }

    line(curve) {
      let d = '', down = false;
      curve.y.forEach((t, i) => {
        if (Number.isNaN(t) || Number.isNaN(curve.x[i])) return down = false;
        const alone = !down && Number.isNaN(curve.y[i + 1] ?? NaN);  // round caps make a dot of it
        d += `${down ? 'L' : 'M'}${this.px(curve.x[i]).toFixed(1)},${this.py(t).toFixed(1)}${alone ? 'h0' : ''}`;
        down = true;
      });
      return svg('path', {class: 'line ' + curve.run.look, d});
    }

    // A curve of a single point would be a dot as small as a line is wide. As a list, which is empty for other curves.
    marker(curve) {
      const places = [...curve.x.keys()].filter(i => Number.isFinite(curve.y[i] + curve.x[i]));
      if (places.length != 1) return [];
      const x = this.px(curve.x[places[0]]), y = this.py(curve.y[places[0]]);
      return [svg('circle', {class: curve.run.look, cx: x.toFixed(1), cy: y.toFixed(1), r: 4, fill: 'currentColor'})];
    }

    band(curve) {
      const places = curve.low ? [...curve.x.keys()].filter(i => Number.isFinite(curve.low[i] + curve.x[i])) : [];
      const edge = (list, i) => `${this.px(curve.x[i]).toFixed(1)},${this.py(list[i]).toFixed(1)}`;
      const around = [...places.map(i => edge(curve.high, i)), ...places.reverse().map(i => edge(curve.low, i))];
      const kind = (around.length == 2 ? 'one ' : '') + (curve.run.seeds == 1 ? 'noise ' : '');
      return svg('polygon', {class: `band ${kind}${curve.run.look}`, points: around.join(' ')});
    }

    // The last values at the right, as svg_plot() writes them: each as near to its curve's end as the others permit.
    // Where there is no room for all, equal ones are written once, and then only some from the whole range.
    ends() {
      const apart = 17, most = 1 + Math.floor((bottom - top) / apart);
      let labels = this.curves.map(c => {
        const t = c.y.findLast((t, i) => Number.isFinite(t) && c.x[i] <= this.to + 1e-9) ?? NaN;
        return {y: Math.max(top, Math.min(bottom, this.py(t))), text: this.scale.text(this.scale.from(t)), look: c.run.look};
      }).filter(label => Number.isFinite(label.y)).sort((a, b) => a.y - b.y);
      if (labels.length > most) labels = labels.filter((label, i) => label.text != labels[i - 1]?.text);
      if (labels.length > most) labels = Array.from({length: most}, (_, i) => labels[Math.floor(i * (labels.length - 1) / (most - 1))]);
      labels.forEach((label, i) => i > 0 && (label.y = Math.max(label.y, labels[i - 1].y + apart)));
      labels.reverse().forEach((label, i) => label.y = Math.min(label.y, bottom - apart * i));
      return labels.map(({y, text, look}) => svg('text', {class: 'end ' + look, x: right + 7, y, dy: '.35em'}, text));
    }

    // Shows the values at a place of the x axis; null: none.
    point(t) {
      this.pointed = t;
      this.cursor.style.visibility = t === null ? 'hidden' : 'visible';
      this.values.replaceChildren();
      if (t === null) return;
      const x = this.px(t);
      this.cursor.setAttribute('x1', x);
      this.cursor.setAttribute('x2', x);
      const scale = scales[axis().kind], name = axis().one;
      const words = [`${name} ${state.x == 'step' ? Math.round(t) : scale.text(scale.from(t))}`];
      this.values.append(words[0]);
      for (const curve of this.curves) {
        const next = curve.x.findIndex((at, i) => at >= t && Number.isFinite(curve.y[i]));
        const last = curve.x.findLastIndex((at, i) => at <= t && Number.isFinite(curve.y[i]));
        if (next < 0 || last < 0) continue;  // behind the curve's end, or before its beginning
        const part = next == last ? 0 : (t - curve.x[last]) / (curve.x[next] - curve.x[last] || 1);
        const value = this.scale.text(this.scale.from(curve.y[last] + part * (curve.y[next] - curve.y[last])));
        const [colour, dashes] = curve.run.look.split(' ');
        this.values.append(html('b', {class: colour}, html('i', {class: dashes}), html('em', {}, value)), ' ');
        words.push(`${curve.run.name} ${value}`);
      }
      this.svg.setAttribute('aria-valuenow', Math.round(100 * (t - this.from) / (this.to - this.from)));
      this.svg.setAttribute('aria-valuetext', words.join(', '));
    }

    key(event) {
      const [from, to] = [this.from, this.to], size = to - from, t = this.pointed ?? from + size / 2;
      const stay = (low, factor) => zoomTo(low - (low - from) * factor, low + (to - low) * factor);
      const pan = by => zoomTo(from + by, to + by);
      const end = event.shiftKey ? size / 4 : size / 50, edge = v => this.point(Math.max(this.from, Math.min(this.to, v)));
      const [low, high] = whole();
      const actions = {
        ArrowLeft: () => event.shiftKey ? pan(-Math.min(end, from - low)) : edge(t - end),
        ArrowRight: () => event.shiftKey ? pan(Math.min(end, high - to)) : edge(t + end),
        Home: () => edge(from), End: () => edge(to),
        Enter: () => stay(t, 0.5), '+': () => stay(t, 0.5), '=': () => stay(t, 0.5), '-': () => stay(t, 2), Escape: zoomOut,
      };
      if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      actions[event.key]();
      if (event.key != 'Escape') edge(this.pointed ?? t);
    }

    // A mouse reads values, and a part that it drags over is shown alone. One finger reads values, two zoom.
    x(event) {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse()).x;
      return Math.max(left, Math.min(right, at));
    }
    down(event) {
      if (event.button != 0) return;
      this.svg.setPointerCapture(event.pointerId);
      this.fingers.set(event.pointerId, this.x(event));
      this.began = this.x(event);
      this.pinch = this.fingers.size == 2 ? [...this.fingers.values()].map(px => this.at(px)) : null;
      this.point(this.at(this.began));
    }
    move(event) {
      const x = this.x(event);
      if (this.fingers.has(event.pointerId)) this.fingers.set(event.pointerId, x);
      if (this.pinch && this.fingers.size == 2) {
        const [a, b] = [...this.fingers.values()], [ta, tb] = this.pinch;
        if (Math.abs(a - b) < 10) return;
        const per = (tb - ta) / (b - a);  // what was under each finger stays there
        return per > 0 ? zoomTo(ta - (a - left) * per, tb + (right - b) * per) : undefined;
      }
      this.point(this.at(x));
      if (event.pointerType != 'mouse' || this.fingers.size == 0) return;
      this.selection.setAttribute('x', Math.min(x, this.began));
      this.selection.setAttribute('width', Math.abs(x - this.began));
      this.selection.style.visibility = 'visible';
    }
    up(event) {
      if (!this.fingers.delete(event.pointerId)) return;
      const x = this.x(event), far = Math.abs(x - this.began) > 8, pinched = this.pinch;
      const a = this.at(this.began), b = this.at(x);
      this.drop();
      if (pinched) return;
      if (far) {
        this.tapped = 0;
        if (event.pointerType == 'mouse') zoomTo(a, b);
      } else if (event.timeStamp - this.tapped < 350) {
        this.tapped = 0;
        zoomOut();
      } else {
        this.tapped = event.timeStamp;
      }
    }
    drop() {
      this.fingers.clear();
      this.pinch = null;
      this.selection.style.visibility = 'hidden';
    }
  }

  // ---- The page.

  const chip = (type, name, id, text, checked, change) =>
    html('span', {class: 'chip'}, html('input', {type, name, id, checked, change}), html('label', {for: id}, text));
  const figures = new Map(data.plots.map(plot => [plot.key, new Figure(plot)]));
  const grid = html('section', {class: 'figures'});
  const reset = html('button', {type: 'button', id: 'whole', click: zoomOut}, 'whole range');
  const how = html('p', {class: 'note', id: 'how'},
                   'Drag over a figure, or pinch it, to zoom; a double click or tap shows all again. With the keyboard: ' +
                   'arrows read values, + and - zoom, Shift and arrows move, Escape shows all. The legend hides runs.');

  const update = () => {
    save();
    reset.disabled = !state.zoom;
    const now = data.plots.filter(drawn).map(plot => figures.get(plot.key)), elements = now.map(figure => figure.element);
    now.forEach(figure => figure.draw());
    if (elements.length != grid.children.length || elements.some((e, i) => e != grid.children[i])) grid.replaceChildren(...elements);
  };

  const controls = html('div', {class: 'controls'},
    html('fieldset', {}, html('legend', {}, 'Plots'), ...data.plots.map(plot =>
      chip('checkbox', 'plots', 'show-' + plot.key, plot.name, drawn(plot), () => {
        state.plots = toggle(state.plots, plot.key);
        update();
      }))),
    html('fieldset', {}, html('legend', {}, 'Over'), ...data.axes.map(a =>
      chip('radio', 'axis', 'over-' + a.key, a.name, a.key == state.x, () => {
        state.x = a.key;
        zoomOut();
      }))),
    html('label', {class: 'slider', for: 'smooth'}, 'Smoothing ', html('input', {type: 'range', id: 'smooth', min: 0, max: 20,
      value: smoothing(), input: event => {
        state.smooth = +event.target.value;
        update();
      }})),
    reset);

  document.querySelectorAll('.legend li').forEach((item, i) => {
    const {name} = data.runs[i];
    const button = html('button', {type: 'button', id: 'run-' + i, 'aria-pressed': !state.hidden.includes(name) + '', click: () => {
      state.hidden = toggle(state.hidden, name);
      button.setAttribute('aria-pressed', !state.hidden.includes(name) + '');
      update();
    }}, ...item.childNodes);
    item.append(button);
  });
  document.addEventListener('pointerdown', event => {
    for (const figure of figures.values()) if (!figure.svg.contains(event.target) && figure.cursor) figure.point(null);
  });
  root.classList.add('scripted');
  host.append(controls, grid, how);
  // The page may have been made anew of other runs.
  if (state.zoom && (state.zoom[0] >= whole()[1] || state.zoom[1] <= whole()[0])) state.zoom = null;
  update();

  // ---- A page that is being followed comes anew, and the reader stays where they are.

  const folds = [...document.querySelectorAll('details')];
  state.open.forEach(i => folds[i] && (folds[i].open = true));
  if (state.focus) document.getElementById(state.focus)?.focus({preventScroll: true});
  const again = () => {
    if (document.hidden || [...figures.values()].some(figure => figure.fingers.size)) return void setTimeout(again, 500);
    state.open = folds.flatMap((fold, i) => fold.open ? [i] : []);
    state.focus = document.activeElement?.id ?? '';
    save();
    location.reload();
  };
  if (root.dataset.reload) setTimeout(again, 1000 * root.dataset.reload);
})();
