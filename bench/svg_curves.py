"""Curves as an SVG file, with only the standard library: for plots of benches without gnuplot."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 960, 600
LEFT, RIGHT, TOP, BOTTOM = 70, 220, 40, 60  # margins; the key is in the right one
COLOURS = ("#0b62a4", "#d1495b", "#2e8b57", "#8e5ea2", "#c78a00", "#3c3c3c", "#00a0a0", "#a0522d")


def ticks(least, most, log):
    """Values for the lines of the grid: powers of ten, or about six round ones."""
    if log:
        powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
        return [10.0 ** power for power in powers if least <= 10.0 ** power <= most]
    step = 10.0 ** math.floor(math.log10((most - least) / 5))
    step *= next(factor for factor in (1, 2, 5, 10) if (most - least) / (step * factor) <= 7)
    return [step * i for i in range(math.ceil(least / step), math.floor(most / step) + 1)]


def place(value, least, most, log):
    """From 0 to 1."""
    if log:
        value, least, most = math.log(value), math.log(least), math.log(most)
    return (value - least) / (most - least)


def span(values, log):
    least, most = min(values), max(values)
    if least == most:
        least, most = (least / 2, most * 2) if log else (least - 1, most + 1)
    return least, most


def draw(title, x_label, y_label, curves, log_x):
    """curves: (name, [(x, y), ...]); with log_x points at x <= 0 are left out. The text of the file; None: there is no point."""
    curves = [(name, [(x, y) for x, y in points if math.isfinite(y) and (x > 0 or not log_x)]) for name, points in curves]
    curves = [(name, points) for name, points in curves if points]
    if not curves:
        return None
    x_span = span([x for _, points in curves for x, _ in points], log_x)
    y_span = span([y for _, points in curves for _, y in points], False)
    across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(x, y):
        return LEFT + across * place(x, *x_span, log_x), TOP + down * (1 - place(y, *y_span, False))

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="13">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>']
    for value in ticks(*x_span, log_x):
        x, _ = at(value, y_span[0])
        out.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{TOP + down}" stroke="#ddd"/>'
                   f'<text x="{x:.1f}" y="{TOP + down + 18}" text-anchor="middle">{value:g}</text>')
    for value in ticks(*y_span, False):
        _, y = at(x_span[0], value)
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + across}" y2="{y:.1f}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    out.append(f'<text x="{LEFT + across / 2:.0f}" y="{HEIGHT - 16}" text-anchor="middle">{escape(x_label)}</text>'
               f'<text transform="translate(18 {TOP + down / 2:.0f}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>')
    for i, (name, points) in enumerate(curves):
        colour = COLOURS[i % len(COLOURS)]
        places = [at(x, y) for x, y in points]
        out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>')
        out.extend(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places)
        y = TOP + 14 + 20 * i
        out.append(f'<line x1="{WIDTH - RIGHT + 16}" y1="{y}" x2="{WIDTH - RIGHT + 40}" y2="{y}" stroke="{colour}" stroke-width="3"/>'
                   f'<text x="{WIDTH - RIGHT + 46}" y="{y + 4}">{escape(name)}</text>')
    return "\n".join(out) + "\n</svg>\n"
