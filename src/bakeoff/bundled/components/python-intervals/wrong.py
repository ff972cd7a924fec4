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
    result = []
    cuts = merge(holes)
    at = 0
    for start, end in merge(intervals):
        while at < len(cuts) and cuts[at][0] < end:
            if start < cuts[at][0]:
                result.append((start, cuts[at][0]))
            start = max(start, cuts[at][1])
            at += 1
        if start < end:
            result.append((start, end))
    return result


def gaps(intervals, start, end):
    return subtract([(start, end)], intervals)
