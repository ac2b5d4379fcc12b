/** Some of what a call asks for, and where to go on. */
export interface Page<Item, Cursor = string> {
  readonly items: readonly Item[]
  /** Given back, it leads to the items behind these; absent at the end. A page may be short of its limit before that. */
  readonly cursor?: Cursor | undefined
}
