/** Does all of a work at once, and gives what it comes to. */
export function whole<Result>(pieces: Iterator<number, Result>): Result {
  for (;;) {
    const { done, value } = pieces.next()
    if (done === true) return value
  }
}
