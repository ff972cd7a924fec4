def merge(intervals):
    result = []
    for start, end in sorted(intervals):
        if start > end:
            raise ValueError(f"{start} > {end}")
        if result and start < result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def subtract(intervals, holes):
    result = merge(intervals)
    for hole_start, hole_end in holes:
        pieces = []
        for start, end in result:
            if hole_end <= start or hole_start >= end:
                pieces.append((start, end))
                continue
            if start < hole_start:
                pieces.append((start, hole_start))
            if hole_end < end:
                pieces.append((hole_end, end))
        result = pieces
    return result


def gaps(intervals, start, end):
    return subtract([(start, end)], intervals)
