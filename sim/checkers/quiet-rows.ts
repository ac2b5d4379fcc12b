/**
 * The rows that had no write since a given moment. All reads of such a row since then give the
 * same. A write of unknown outcome may take effect at any time, so its rows never count as quiet
 * again.
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

  /** The write's outcome is known, and it has no later effect. */
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
