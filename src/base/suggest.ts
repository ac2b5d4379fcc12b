/** "Did you mean": the known word nearest to a mistyped one, by edit distance. */

/** Beyond a third of the word (at least two edits, of two letters one), a guess only confuses. */
function distanceMax(word: string): number {
  return Math.max(word.length > 2 ? 2 : 1, Math.floor(word.length / 3))
}

/** The nearest of `known`, or undefined when none is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  let best: { readonly text: string; readonly distance: number } | undefined
  for (const text of known) {
    const distance = editDistance(word.toLowerCase(), text.toLowerCase())
    if (distance > distanceMax(word)) continue
    if (best === undefined || distance < best.distance) best = { text, distance }
  }
  return best?.text
}

/** `unknown field "lisen"; did you mean "listen"?`, or the list of what is known. */
export function unknownWord(kind: string, word: string, known: readonly string[]): string {
  // Nothing in it is to shape a terminal.
  const shown = JSON.stringify(word)
  if (known.length === 0) return `unknown ${kind} ${shown}; there is none`
  const guess = nearest(word, known)
  if (guess !== undefined) return `unknown ${kind} ${shown}; did you mean "${guess}"?`
  return `unknown ${kind} ${shown}; known: ${known.join(', ')}`
}

/** Levenshtein, with a swap of neighbours counted as one edit. */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = a[i - 1] === b[j - 1] ? 0 : 1
      let edits = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + change)
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (isSwap) edits = Math.min(edits, at(beforeLast, j - 2) + 1)
      row.push(edits)
    }
    beforeLast = last
    last = row
  }
  return at(last, b.length)
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY
}
