"""Compiled loops of string kernels.

Strings are given as one array of digits (positions in the alphabet) and the positions where each string begins. The
digit -1 stands for a character that does not occur in the alphabet of the other strings.
"""

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.intrinsics import popcount

# codes are sorted by insertion if the square of their number is at most this times the bytes of the largest
SORTED_BY_INSERTION = 1000


@compiled()
def _sort(codes, spare, places):
    """Sort non-negative integers: few by insertion, many by radix sort over their bytes, from the lowest byte.

    ``spare`` has room for all of them, ``places`` for 256 numbers. numba's own sort takes 0.8 s to compile.
    """
    n = codes.shape[0]
    largest, n_bytes = np.int64(0), 0
    for t in range(n):
        largest = max(largest, codes[t])
    while largest > 0:
        largest, n_bytes = largest >> 8, n_bytes + 1
    if n * n <= SORTED_BY_INSERTION * n_bytes:
        for t in range(1, n):
            code, place = codes[t], t
            while place > 0 and codes[place - 1] > code:
                codes[place] = codes[place - 1]
                place -= 1
            codes[place] = code
        return
    for k in range(n_bytes):
        shift = 8 * k
        for value in range(256):
            places[value] = 0
        for t in range(n):
            places[(codes[t] >> shift) & 255] += 1
        place = 0
        for value in range(256):
            place, places[value] = place + places[value], place
        for t in range(n):
            value = (codes[t] >> shift) & 255
            spare[places[value]] = codes[t]
            places[value] += 1
        for t in range(n):
            codes[t] = spare[t]


@compiled()
def gram_counts(digits, starts, shortest, longest, base):
    """(indptr, codes, counts): the runs of shortest to longest digits of each string, sorted, with their counts.

    The code of a run is the number whose digits in the given base are its digits plus 1, so that runs of different
    lengths have different codes.
    """
    n = starts.shape[0] - 1
    total, most = 0, 0
    for i in range(n):
        runs = 0
        for length in range(shortest, longest + 1):
            runs += max(0, starts[i + 1] - starts[i] - length + 1)
        total, most = total + runs, max(most, runs)
    codes, spare, places = np.empty(total, np.int64), np.empty(most, np.int64), np.empty(256, np.int64)
    counts = np.empty(total, np.int32)
    indptr = np.zeros(n + 1, np.int32)
    end = 0
    for i in range(n):
        begin, first = end, end
        for p in range(starts[i], starts[i + 1]):
            code = 0
            for length in range(1, min(longest, starts[i + 1] - p) + 1):
                code = code * base + digits[p + length - 1] + 1
                if length >= shortest:
                    codes[end] = code
                    end += 1
        _sort(codes[begin:end], spare, places)
        # after sorting, equal codes are adjacent: keep one of each, and their number
        last = end
        end = first
        t = begin
        while t < last:
            code, count = codes[t], 1
            t += 1
            while t < last and codes[t] == code:
                count += 1
                t += 1
            codes[end] = code
            counts[end] = count
            end += 1
        indptr[i + 1] = end
    return indptr, codes[:end].copy(), counts[:end].copy()


@compiled()
def mark(codes, seen):
    """Set seen[code] = 1 for all codes."""
    for t in range(codes.shape[0]):
        seen[codes[t]] = 1


@compiled()
def _automaton(text, letters, length, link, following, count):
    """Build the suffix automaton of a text and return its number of states.

    Blumer et al. (1985). A state stands for the substrings that end at the same positions; their lengths are
    length[link] + 1 to length. ``following`` maps state and letter to the next state, -1 to none. Edits all arrays but
    the text.
    """
    length[0], link[0], count[0] = 0, -1, 0
    for c in range(letters):
        following[c] = -1
    states, last = 1, 0
    for t in range(text.shape[0]):
        c = text[t]
        new = states
        states += 1
        length[new], count[new] = length[last] + 1, 1
        for e in range(letters):
            following[new * letters + e] = -1
        p = last
        while p >= 0 and following[p * letters + c] < 0:
            following[p * letters + c] = new
            p = link[p]
        if p < 0:
            link[new] = 0
        else:
            q = following[p * letters + c]
            if length[q] == length[p] + 1:
                link[new] = q
            else:
                clone = states
                states += 1
                length[clone], link[clone], count[clone] = length[p] + 1, link[q], 0
                for e in range(letters):
                    following[clone * letters + e] = following[q * letters + e]
                while p >= 0 and following[p * letters + c] == q:
                    following[p * letters + c] = clone
                    p = link[p]
                link[q] = link[new] = clone
        last = new
    return states


@compiled()
def _occurrences(states, longest, length, link, count, total):
    """Set count[v] to the number of occurrences of each substring of state v, and total[v] to a sum of counts.

    The sum is over all substrings of v and of the states along its suffix links.
    """
    places = np.zeros(longest + 2, np.int64)
    for v in range(states):
        places[length[v] + 1] += 1
    for v in range(longest + 1):
        places[v + 1] += places[v]
    order = np.empty(states, np.int64)
    for v in range(states):
        order[places[length[v]]] = v
        places[length[v]] += 1
    for r in range(states - 1, 0, -1):
        v = order[r]
        count[link[v]] += count[v]
    total[0] = 0
    for r in range(1, states):
        v = order[r]
        total[v] = total[link[v]] + (length[v] - length[link[v]]) * count[v]


@compiled()
def _repeated(text, local, letters, length, link, following, count, total):
    """Σ over common substrings of the number of occurrences in one string times that in the other."""
    result, v, matched = 0.0, 0, 0
    for t in range(text.shape[0]):
        c = local[text[t]] if text[t] >= 0 else -1
        if c < 0:
            v, matched = 0, 0
            continue
        while v > 0 and following[v * letters + c] < 0:
            v = link[v]
            matched = length[v]
        if following[v * letters + c] >= 0:
            v = following[v * letters + c]
            matched += 1
            result += total[link[v]] + (matched - length[link[v]]) * count[v]
    return result


@compiled()
def _distinct(text, local, letters, length, link, following, reached, touched):
    """The number of different common substrings. ``reached`` must be all 0, and is so again afterwards."""
    result, v, matched, marks = 0, 0, 0, 0
    for t in range(text.shape[0]):
        c = local[text[t]] if text[t] >= 0 else -1
        if c < 0:
            v, matched = 0, 0
            continue
        while v > 0 and following[v * letters + c] < 0:
            v = link[v]
            matched = length[v]
        if following[v * letters + c] < 0:
            continue
        v = following[v * letters + c]
        matched += 1
        # the matched substring of v and all its suffixes are common: those of linked states in full length
        u, size = v, matched
        while u > 0 and reached[u] < size:
            if reached[u] == 0:
                touched[marks] = u
                marks += 1
            result += size - max(reached[u], length[link[u]])
            reached[u] = size
            u = link[u]
            size = length[u]
    for m in range(marks):
        reached[touched[m]] = 0
    return result


@compiled()
def substrings_block(repeated, a, a_starts, b, b_starts, letters, diagonal, out):
    """out[i, j] = the value of CommonSubstrings for string i of a and j of b. The automaton of i reads every j.

    With ``diagonal``, out[i, 0] is the value of string i of a and string i of b.
    """
    local = np.full(letters, -1, np.int32)
    for i in range(out.shape[0]):
        begin, end = a_starts[i], a_starts[i + 1]
        text = np.empty(end - begin, np.int32)
        used = 0
        for t in range(begin, end):
            if local[a[t]] < 0:
                local[a[t]] = used
                used += 1
            text[t - begin] = local[a[t]]
        most = 2 * text.shape[0] + 1
        length, link = np.empty(most, np.int64), np.empty(most, np.int64)
        count, total = np.empty(most, np.int64), np.empty(most, np.float64)
        following = np.empty(most * max(1, used), np.int32)
        states = _automaton(text, used, length, link, following, count)
        if repeated:
            _occurrences(states, text.shape[0], length, link, count, total)
        else:
            count[:] = 0
        touched = np.empty(most, np.int64)
        for j in range(out.shape[1]):
            place = i if diagonal else j
            other = b[b_starts[place] : b_starts[place + 1]]
            if used == 0:
                out[i, j] = 0
            elif repeated:
                out[i, j] = _repeated(other, local, used, length, link, following, count, total)
            else:
                out[i, j] = _distinct(other, local, used, length, link, following, count, touched)
        for t in range(begin, end):
            local[a[t]] = -1


@compiled(fast=True)
def _subsequences(s, t, k, decay, inner, prefix, before):
    """Σ over common subsequences of k characters of decay^(sum of their lengths in s and t, with gaps).

    Lodhi et al. (2002), Definition 2: prefix[q, i] is K'_i of the part of s read so far and t[:q], inner[i] is K''_i
    along t, and before[i] is K'_i without the current character of s.
    """
    square = decay * decay
    for q in range(t.shape[0] + 1):
        prefix[q, 0] = 1.0
        for i in range(1, k):
            prefix[q, i] = 0.0
    result = 0.0
    for p in range(s.shape[0]):
        x = s[p]
        for i in range(k):
            inner[i] = 0.0
            before[i] = prefix[0, i]
        for q in range(t.shape[0]):
            line = prefix[q + 1]
            hit = square if t[q] == x else 0.0
            result += hit * before[k - 1]
            for i in range(k - 1, 0, -1):
                inner[i] = decay * inner[i] + hit * before[i - 1]
            for i in range(1, k):
                old = line[i]
                before[i] = old
                line[i] = decay * old + inner[i]
    return result


@compiled()
def subsequences_block(a, a_starts, b, b_starts, k, decay, diagonal, out):
    """out[i, j] = `_subsequences` of string i of a and j of b; with ``diagonal``, out[i, 0] of string i of both."""
    longest = 0
    for j in range(b_starts.shape[0] - 1):
        longest = max(longest, b_starts[j + 1] - b_starts[j])
    prefix = np.empty((longest + 1, k))
    inner, before = np.empty(k), np.empty(k)
    for i in range(out.shape[0]):
        s = a[a_starts[i] : a_starts[i + 1]]
        for j in range(out.shape[1]):
            place = i if diagonal else j
            t = b[b_starts[place] : b_starts[place + 1]]
            out[i, j] = _subsequences(s, t, k, decay, inner, prefix, before)


@compiled()
def _windows(s, t, s_kinds, t_kinds, k, mismatch, table):
    """Σ over all pairs of windows of k characters of the product of the similarities of their characters.

    Each diagonal is cut into stretches of k characters. The product of a window is that of a suffix of one stretch and
    a prefix of the next (van Herk 1992), so no division by a possible zero is needed.
    """
    result = 0.0
    rising, falling = np.empty(k), np.empty(k + 1)
    for shift in range(k - t.shape[0], s.shape[0] - k + 1):
        p, q = max(0, shift), max(0, -shift)
        n = min(s.shape[0] - p, t.shape[0] - q)
        # falling[r] is the product of the previous stretch from position r on; 0 before the first stretch
        falling[:k] = 0.0
        falling[k] = 1.0
        for first in range(0, n, k):
            size = min(k, n - first)
            product = 1.0
            for r in range(size):
                x, z = p + first + r, q + first + r
                if s[x] == t[z]:
                    value = 1.0
                elif s_kinds[x] >= 0 and t_kinds[z] >= 0:
                    value = table[s_kinds[x], t_kinds[z]]
                else:
                    value = mismatch
                product *= value
                rising[r] = value
                result += product * falling[r + 1]
            if size == k:
                for r in range(k - 1, -1, -1):
                    falling[r] = falling[r + 1] * rising[r]
    return result


@compiled()
def windows_block(a, a_starts, a_kinds, b, b_starts, b_kinds, k, mismatch, table, diagonal, out):
    """out[i, j] = `_windows` of string i of a and j of b; with ``diagonal``, out[i, 0] of string i of both."""
    for i in range(out.shape[0]):
        begin, end = a_starts[i], a_starts[i + 1]
        for j in range(out.shape[1]):
            place = i if diagonal else j
            start, stop = b_starts[place], b_starts[place + 1]
            out[i, j] = _windows(
                a[begin:end], b[start:stop], a_kinds[begin:end], b_kinds[start:stop], k, mismatch, table
            )


@compiled(inline=True)
def _kind(x, z, base):
    """0 for the same letter, 1 for different ones; powers of base if the first, the second or both are no letters."""
    if x >= 0 and z >= 0:
        return 0 if x == z else 1
    if z >= 0:
        return base
    return base * base if x >= 0 else base * base * base


@compiled()
def mismatches_block(a, a_starts, b, b_starts, k, table, diagonal, out):
    """out[i, j] = Σ table[Σ kinds of the characters] over runs of k characters of string i of a and j of b.

    With ``diagonal``, out[i, 0] is the value of string i of both. Along a diagonal the sum of kinds gains one character
    and loses one.
    """
    base = k + 1
    for i in range(out.shape[0]):
        s = a[a_starts[i] : a_starts[i + 1]]
        for j in range(out.shape[1]):
            place = i if diagonal else j
            t = b[b_starts[place] : b_starts[place + 1]]
            result = 0.0
            for shift in range(k - t.shape[0], s.shape[0] - k + 1):
                p, q = max(0, shift), max(0, -shift)
                kinds = 0
                for r in range(min(s.shape[0] - p, t.shape[0] - q)):
                    kinds += _kind(s[p + r], t[q + r], base)
                    if r >= k:
                        kinds -= _kind(s[p + r - k], t[q + r - k], base)
                    if r >= k - 1:
                        result += table[kinds]
            out[i, j] = result


@compiled()
def bit_planes(digits, starts, planes):
    """Set planes[i, b, w] to bit b of 64 digits of string i. The last plane marks where string i has known digits."""
    last = planes.shape[1] - 1
    for i in range(planes.shape[0]):
        for p in range(starts[i + 1] - starts[i]):
            digit = digits[starts[i] + p]
            if digit < 0:
                continue
            word, bit = p // 64, np.uint64(p % 64)
            planes[i, last, word] |= np.uint64(1) << bit
            for plane in range(last):
                planes[i, plane, word] |= np.uint64((digit >> plane) & 1) << bit


@compiled()
def degrees_block(a, b, weights, diagonal, out):
    """out[i, j] = Σ_l weights[l - 1] (positions where the next l characters of i and j are equal), by bit planes."""
    last, words = a.shape[1] - 1, min(a.shape[2], b.shape[2])
    equal = np.zeros(words + 1, np.uint64)
    one, top = np.uint64(1), np.uint64(63)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            place = i if diagonal else j
            for w in range(words):
                different = np.uint64(0)
                for plane in range(last):
                    different |= a[i, plane, w] ^ b[place, plane, w]
                equal[w] = a[i, last, w] & b[place, last, w] & ~different
            result = 0.0
            for length in range(weights.shape[0]):
                count = 0
                for w in range(words):
                    count += popcount(equal[w])
                if count == 0:
                    break
                result += weights[length] * count
                # a position starts a run of length + 1 if the next position starts one of this length
                for w in range(words):
                    equal[w] &= (equal[w] >> one) | (equal[w + 1] << top)
            out[i, j] = result
