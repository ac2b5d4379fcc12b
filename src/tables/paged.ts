/** A source of pages, as a call that may be awaited or iterated over. */
import type { Page } from '../base/page.ts'

/**
 * Awaited it is the first page, and its `cursor` leads on. Iterated over it is every item behind that
 * place, in order; pages are read as they are wanted, and `limit` is what one of them holds, not how
 * many items there are in all. The call asks for the first page at once; each iteration begins with
 * it.
 *
 *   for await (const photo of rows.scan(Photo, { user_id: 1n })) console.log(photo.url)
 */
export interface Paged<Item, First extends Page<Item> = Page<Item>>
  extends Promise<First>, AsyncIterable<Item> {}

/** `read` reads the page behind a cursor; without one that with which the caller wants to begin. */
export function paged<Item, First extends Page<Item>>(
  read: (cursor?: string) => Promise<First>,
): Paged<Item, First> {
  const first = read()
  async function* items(): AsyncGenerator<Item, void, undefined> {
    for (let page = await first; ; page = await read(page.cursor)) {
      yield* page.items
      if (page.cursor === undefined) return
    }
  }
  return Object.assign(first, { [Symbol.asyncIterator]: items })
}
