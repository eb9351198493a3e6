"""Drawings as SVG, for a light and for a dark page: curves and points over logarithmic axes, and stacked bars."""

import html
import math

LIGHT = ["#1f77b4", "#6b6b6b", "#c2410c", "#8a3ffc", "#0f7b3f", "#b58900", "#c2185b"]
DARK = ["#6cb6ff", "#a8a8a8", "#ff9a5c", "#c4a1ff", "#56d364", "#e3b341", "#ff7bab"]
WIDTH, HEIGHT = 250, 210  # of a panel
LEFT, TOP, RIGHT = 62, 34, 14


class Drawing:
    def __init__(self, width, height, title):
        self.size, self.title, self.parts = (width, height), title, []

    def add(self, name, text=None, **attributes):
        words = ""
        for key, value in attributes.items():
            text_value = value if isinstance(value, str) else f"{value:.4g}"
            words += f' {key.rstrip("_").replace("_", "-")}="{html.escape(text_value)}"'
        self.parts.append(f"<{name}{words}/>" if text is None else f"<{name}{words}>{html.escape(text)}</{name}>")

    def text(self, x, y, text, anchor="start", **attributes):
        self.add("text", text, x=x, y=y, text_anchor=anchor, **attributes)

    def legend(self, y, names):
        x = LEFT
        for number, name in enumerate(names):
            wide = 34 + 6.2 * len(name)
            if x + wide > self.size[0] and x > LEFT:
                x, y = LEFT, y + 17
            self.add("rect", x=x, y=y - 8, width=14, height=8, class_=f"f{number}")
            self.text(x + 19, y, name)
            x += wide

    def write(self, path):
        def colours(of):
            return "".join(f".s{i}{{stroke:{c};fill:none;stroke-width:1.8}}.f{i}{{fill:{c}}}" for i, c in enumerate(of))
        width, height = self.size
        style = ("text{font:11px sans-serif;fill:#222}.title{font-weight:bold}.axis{stroke:#888;fill:none}"
                 ".grid{stroke:#8884;fill:none}.band{fill:#8883}.dashed{stroke-dasharray:5 3}" + colours(LIGHT) +
                 "@media(prefers-color-scheme:dark){text{fill:#ddd}" + colours(DARK) + "}")
        path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
                        f'height="{height:g}" role="img"><title>{html.escape(self.title)}</title>'
                        f"<style>{style}</style>\n" + "\n".join(self.parts) + "\n</svg>\n")


class LogAxis:
    def __init__(self, low, high, begin, end):
        self.low, self.high = math.log10(low), math.log10(high)
        self.begin, self.end = begin, end

    def at(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self):
        return [10.0**e for e in range(math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9) + 1)]


class LinearAxis:
    def __init__(self, low, high, begin, end):
        self.low, self.high, self.begin, self.end = low, high, begin, end

    def at(self, value):
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)

    def ticks(self):
        """Whole numbers, so far apart that their texts do not touch."""
        step = next((step for step in (1, 2, 5, 10, 20, 50) if self.high - self.low <= 16 * step), 100)
        return range(math.ceil(self.low / step) * step, math.floor(self.high) + 1, step)


def number_text(value):
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def frame(drawing, left, title, x, y, x_ticks):
    drawing.text(left + LEFT, TOP - 12, title, class_="title")
    bottom, right = TOP + HEIGHT, x.end
    for value in y.ticks():
        at = y.at(value)
        drawing.add("path", d=f"M{left + LEFT:g} {at:.1f}H{right:g}", class_="grid")
        drawing.text(left + LEFT - 6, at + 4, number_text(value), "end")
    for value in x_ticks:
        drawing.text(x.at(value), bottom + 16, number_text(value), "middle")
    drawing.add("path", d=f"M{left + LEFT:g} {TOP:g}V{bottom:g}H{right:g}", class_="axis")


def finish(drawing, path, y_label, names):
    """What is left and below of panels."""
    drawing.text(14, TOP + HEIGHT / 2, y_label, "middle", transform=f"rotate(-90 14 {TOP + HEIGHT / 2:g})")
    drawing.legend(TOP + HEIGHT + 52, names)
    drawing.write(path)


def curves(path, title, panels, x_ticks, y_range, labels, dashed=()):
    """panels: {title: {series: [(x, y)]}}, with the same series in each. labels: of x and y. dashed: which series."""
    names = list(next(iter(panels.values())))
    drawing = Drawing(len(panels) * (LEFT + WIDTH) + RIGHT, TOP + HEIGHT + 78, title)
    bottom = TOP + HEIGHT
    for number, (panel, series) in enumerate(panels.items()):
        left = number * (LEFT + WIDTH)
        x = LogAxis(x_ticks[0], x_ticks[-1], left + LEFT, left + LEFT + WIDTH)
        y = LogAxis(*y_range, bottom, TOP)
        frame(drawing, left, panel, x, y, x_ticks)
        for index, name in enumerate(names):
            points = [f"{x.at(a):.1f} {y.at(b):.1f}" for a, b in series[name]]
            drawing.add("path", d="M" + "L".join(points), class_=f"s{index}" + " dashed" * (name in dashed))
        drawing.text(left + LEFT + WIDTH / 2, bottom + 32, labels[0], "middle")
    finish(drawing, path, labels[1], names)


def comparison(path, title, series, span, band, labels):
    """Points (measured, modelled) of each series, with a line where both are equal and a band around it."""
    drawing = Drawing(LEFT + 1.4 * WIDTH + 2 * RIGHT, TOP + HEIGHT + 78, title)
    bottom = TOP + HEIGHT
    x, y = LogAxis(*span, LEFT, LEFT + 1.4 * WIDTH), LogAxis(*span, bottom, TOP)
    frame(drawing, 0, title, x, y, x.ticks())
    low, high = span
    corners = [(low, low), (low, low * (1 + band)), (high / (1 + band), high), (high, high), (high, high * (1 - band)),
               (low / (1 - band), low)]
    drawing.add("path", d="M" + "L".join(f"{x.at(a):.1f} {y.at(b):.1f}" for a, b in corners) + "Z", class_="band")
    drawing.add("path", d=f"M{x.at(low):.1f} {y.at(low):.1f}L{x.at(high):.1f} {y.at(high):.1f}", class_="axis")
    for index, points in enumerate(series.values()):
        for a, b in points:
            drawing.add("circle", cx=x.at(a), cy=y.at(b), r=3.5, class_=f"f{index}")
    drawing.text(LEFT + 0.7 * WIDTH, bottom + 32, labels[0], "middle")
    finish(drawing, path, labels[1], series)


def labelled_points(path, title, series, x_range, y_range, labels):
    """series: {name: [(x, [y, ...], label)]}: the mean of the ys, a line from the least to the greatest, and a line from
    point to point, or across where there is one point. Labels of one series stand to the left, of the next to the
    right. y is linear."""
    drawing = Drawing(LEFT + 2 * WIDTH + 4 * RIGHT, TOP + HEIGHT + 78, title)
    bottom = TOP + HEIGHT
    x, y = LogAxis(*x_range, LEFT, LEFT + 2 * WIDTH), LinearAxis(*y_range, bottom, TOP)
    frame(drawing, 0, title, x, y, x.ticks())
    for index, points in enumerate(series.values()):
        middles = [(x.at(a), y.at(sum(ys) / len(ys))) for a, ys, _ in points]
        if len(middles) == 1:
            drawing.add("path", d=f"M{x.begin:g} {middles[0][1]:.1f}H{x.end:g}", class_=f"s{index} dashed")
        drawing.add("path", d="M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in middles), class_=f"s{index}")
        for (a, b), (_, ys, label) in zip(middles, points):
            drawing.add("path", d=f"M{a:.1f} {y.at(min(ys)):.1f}V{y.at(max(ys)):.1f}", class_=f"s{index}")
            drawing.add("circle", cx=a, cy=b, r=3.5, class_=f"f{index}")
            drawing.text(*((a - 7, b - 7, label, "end") if index % 2 else (a + 7, b + 13, label)))
    drawing.text(LEFT + WIDTH, bottom + 32, labels[0], "middle")
    finish(drawing, path, labels[1], series)


def bars(path, title, rows, unit):
    """rows: {name: {part: value}}, stacked from left to right, each as wide as its share of the longest row."""
    parts = list(dict.fromkeys(part for row in rows.values() for part in row))
    left, wide = 300, 420
    drawing = Drawing(left + wide + 90, TOP + 26 * len(rows) + 50, title)
    drawing.text(8, TOP - 12, title, class_="title")
    longest = max(sum(row.values()) for row in rows.values())
    for number, (name, row) in enumerate(rows.items()):
        y, x = TOP + 26 * number, left
        drawing.text(left - 8, y + 13, name, "end")
        for part, value in row.items():
            drawing.add("rect", x=x, y=y, width=wide * value / longest, height=17, class_=f"f{parts.index(part)}")
            x += wide * value / longest
        drawing.text(x + 6, y + 13, f"{sum(row.values()):.2f} {unit}")
    drawing.legend(TOP + 26 * len(rows) + 20, parts)
    drawing.write(path)
