/** A planted bug: edits of the real sources, applied to a copy of them. */

/** `find` stands exactly once in `file`, or the patch is out of date and the hunt fails. */
export interface Edit {
  /** From the root of the package. */
  readonly file: string
  readonly find: string
  readonly replace: string
}

export interface Mutant {
  readonly id: string
  readonly title: string
  readonly edits: readonly Edit[]
  /** Rules that may find it; all of them when absent. */
  readonly rules?: readonly string[]
  /** The control: over its seeds nothing may be found. */
  readonly isHarmless?: true
  /** For mutants that need not be looked for in all seeds. */
  readonly seedsMax?: number
  /**
   * Scopes to be searched whole instead of seeds: for what needs a few events in one order, which a
   * world with clocks, links and disks brings about too rarely to be waited for.
   */
  readonly scopes?: readonly string[]
}
