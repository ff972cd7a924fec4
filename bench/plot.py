"""Draw lines with two logarithmic axes as an SVG that needs no fonts or scripts of its own."""

import math
from collections.abc import Mapping, Sequence
from html import escape

Points = Sequence[tuple[float, float]]
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, LEGEND = 760, 420, 70, 20, 50, 170
COLOURS = ("#0b6e4f", "#37a77a", "#666666", "#b8860b", "#3366aa", "#993333", "#774499", "#cc6600")


def log_plot(lines: Mapping[str, Points], *, x: str, y: str, title: str) -> str:
    """Return the picture. The first lines are drawn thicker than the others: they are ours."""
    every = [point for points in lines.values() for point in points]
    left, right = _powers([point[0] for point in every])
    low, high = _powers([point[1] for point in every])

    def place(point: tuple[float, float]) -> tuple[float, float]:
        across = (math.log10(point[0]) - left) / (right - left)
        up = (math.log10(point[1]) - low) / (high - low)
        return LEFT + across * (WIDTH - LEFT - LEGEND), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    parts = [_grid(place, left, right, low, high, x, y)]
    for number, (name, points) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        wide = 3 if name.startswith("bakeoff") else 1.5
        path = " ".join(f"{across:.1f},{up:.1f}" for across, up in map(place, points))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{wide}"/>')
        parts += [
            f'<circle cx="{across:.1f}" cy="{up:.1f}" r="3" fill="{colour}"/>' for across, up in map(place, points)
        ]
        at = TOP + 14 + 20 * number
        parts.append(f'<rect x="{WIDTH - LEGEND + 16}" y="{at - 8}" width="14" height="4" fill="{colour}"/>')
        parts.append(_text(WIDTH - LEGEND + 36, at, name))
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box}>'
    label = f"<title>{escape(title)}</title>"
    return f'{head}{label}<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>\n'


def _powers(values: Sequence[float]) -> tuple[int, int]:
    """Return the powers of ten around the values."""
    low = math.floor(math.log10(min(values)))
    return low, max(math.ceil(math.log10(max(values))), low + 1)


def _grid(place, left: int, right: int, low: int, high: int, x: str, y: str) -> str:  # type: ignore[no-untyped-def]
    parts = []
    for power in range(left, right + 1):
        across, bottom = place((10.0**power, 10.0**low))
        parts.append(f'<path d="M{across:.1f} {TOP}V{bottom:.1f}" stroke="#dddddd"/>')
        parts.append(
            _text(across, HEIGHT - BOTTOM + 18, f"{10**power:,}" if power >= 0 else f"{10.0**power:g}", "middle")
        )
    for power in range(low, high + 1):
        start, up = place((10.0**left, 10.0**power))
        parts.append(f'<path d="M{start:.1f} {up:.1f}H{WIDTH - LEGEND}" stroke="#dddddd"/>')
        parts.append(_text(start - 8, up + 4, f"{10.0**power:,g}", "end"))
    parts.append(_text((LEFT + WIDTH - LEGEND) / 2, HEIGHT - 12, x, "middle"))
    parts.append(f'<g transform="translate(16 {HEIGHT / 2}) rotate(-90)">{_text(0, 0, y, "middle")}</g>')
    return "".join(parts)


def _text(across: float, up: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{across:.1f}" y="{up:.1f}" text-anchor="{anchor}" fill="#222222">{escape(text)}</text>'
