/** The middle one, or the larger of the two in the middle; undefined of nothing. */
export function computeMedian(numbers: readonly number[]): number | undefined {
  const sorted = [...numbers].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]
}
