/**
 * Which rows nobody has written to since a moment: what they say is known then, whoever reads it when. A
 * write whose outcome is not known may still take effect, so its rows are never quiet again.
 */
export class QuietRows {
  readonly #open = new Map<string, number>()
  readonly #touchedBy = new Map<string, number>()
  #writes = 0

  /** Now, as the number of the last write that was begun or ended. */
  get moment(): number {
    return this.#writes
  }

  begin(rows: readonly string[]): void {
    this.#touch(rows, 1)
  }

  /** What it has done is known, and nothing more comes of it. */
  end(rows: readonly string[]): void {
    this.#touch(rows, -1)
  }

  isQuietSince(row: string, moment: number): boolean {
    return (this.#open.get(row) ?? 0) === 0 && (this.#touchedBy.get(row) ?? 0) <= moment
  }

  #touch(rows: readonly string[], opened: number): void {
    this.#writes += 1
    for (const row of rows) {
      this.#open.set(row, (this.#open.get(row) ?? 0) + opened)
      this.#touchedBy.set(row, this.#writes)
    }
  }
}
