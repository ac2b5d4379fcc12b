/** The operations that sessions of tables ask for: few keys, so that they meet, and steps of every kind. */
import { formatMark } from '../checkers/table-checker.ts'
import type { SeededRandom } from '../world/random.ts'
import type { ShopVersion } from './table-schema.ts'
import type { Bounds, Named, TableRead, TableStep, TableWrite } from './table-step.ts'

const shelves = [1, 2, 3] as const
const keptShelf = 4
const items = ['a', 'b', 'c'] as const
const tags = ['x', 'y', 'z'] as const
const labels = ['left', 'middle', 'right', 'top'] as const
const limits = [1, 2, 3, 100] as const
const pricesMax = 6
const ownNotesMax = 1_000_000
/** Parts per million. */
const half = 500_000

export interface Drawing {
  readonly random: SeededRandom
  readonly store: string
  readonly version: ShopVersion
}

/**
 * Reads and writes in any order; the draw of numbers comes last, since a row without its number cannot be read.
 */
export function drawTransaction(drawing: Drawing, who: string): readonly TableStep[] {
  const { random, store } = drawing
  const isBlind = random.chance(150_000)
  const others = Array.from({ length: isBlind ? 0 : random.int(0, 4) }, () =>
    random.chance(550_000) ? drawRead(drawing) : drawWrite(drawing),
  )
  const visits: TableStep[] = Array.from({ length: random.pick([0, 0, 1, 2]) }, () => ({
    kind: 'insert',
    table: 'Visit',
    row: { store, who },
  }))
  const steps = isBlind ? [] : random.shuffle([drawWrite(drawing), ...others])
  return [...steps, ...visits]
}

/**
 * Rows of before the later indexes, which no session changes: what a session puts is in these indexes already,
 * and a build alone puts the entries of the rows here.
 */
export function drawKept(drawing: Drawing): readonly TableStep[] {
  return items.map((item) => {
    const row = { ...drawItem(drawing), shelf: keptShelf, item }
    return { kind: 'put', table: 'Item', row }
  })
}

/** Changes of what the later index has or stores, while a build fills that. */
export function drawIndexed(drawing: Drawing): readonly TableStep[] {
  return Array.from({ length: drawing.random.int(1, 4) }, () => drawIndexedChange(drawing))
}

function drawIndexedChange(drawing: Drawing): TableStep {
  const { random, store, version } = drawing
  if (random.chance(half)) {
    // A note that no other row has: what a build puts of a row as it was is not put right by chance.
    const note = `note ${random.int(1, ownNotesMax)}`
    return { kind: 'put', table: 'Item', row: { ...drawItem(drawing), note } }
  }
  const patch =
    version === 2 && random.chance(half)
      ? { origin: random.pick(labels) }
      : { price: random.int(0, pricesMax) }
  return { kind: 'update', table: 'Item', key: drawItemKey(random, store), patch }
}

/** Every transaction that writes says in a row which run of which operation it is. */
export function markStep(store: string, operation: string, run: number): TableStep {
  const row = { store, mark: operation, run: formatMark(operation, run) }
  return { kind: 'put', table: 'Mark', row }
}

export function drawReads(drawing: Drawing): readonly TableRead[] {
  return Array.from({ length: drawing.random.int(1, 5) }, () => drawRead(drawing))
}

/** All rows, and all of every index. */
export function allReads(store: string): readonly TableRead[] {
  const page = { reverse: false, limit: 100, isPaged: true, isWithRows: false }
  const index = (table: string, name: string): TableRead => ({
    kind: 'index',
    table,
    index: name,
    query: {},
    ...page,
  })
  return [
    { kind: 'tree', key: { store }, limit: 100 },
    ...[index('Item', 'ItemsByTag'), index('Item', 'ItemsByPrice')],
    ...[index('Shelf', 'ShelvesByLabel'), index('Visit', 'VisitsByWho')],
    index('Offer', 'OffersByWho'),
  ]
}

function drawRead(drawing: Drawing): TableRead {
  const { random, store } = drawing
  const page = {
    reverse: random.chance(300_000),
    limit: random.pick(limits),
    isPaged: random.chance(500_000),
  }
  if (random.chance(200_000)) return drawOfferRead(drawing, page)
  switch (random.int(0, 7)) {
    case 0:
    case 1:
      return drawGet(drawing)
    case 2:
      return { kind: 'scan', table: 'Item', query: drawItemQuery(random), ...page }
    case 3:
      return { kind: 'scan', table: 'Shelf', query: {}, ...page }
    case 4:
      return random.chance(500_000)
        ? { kind: 'tree', key: { store }, limit: random.pick([3, 100]) }
        : drawSecondScan(drawing, page)
    case 5: {
      const query = random.chance(800_000) ? { tag: random.pick(tags) } : {}
      return { ...buildIndexScan('Item', 'ItemsByTag', random), query, ...page }
    }
    case 6: {
      const query = { price: drawBounds(random, random.int(0, 3), pricesMax) }
      return { ...buildIndexScan('Item', 'ItemsByPrice', random), query, ...page }
    }
    default:
      return random.chance(500_000)
        ? { ...buildIndexScan('Shelf', 'ShelvesByLabel', random), query: {}, ...page }
        : { ...buildIndexScan('Visit', 'VisitsByWho', random), query: {}, ...page }
  }
}

function drawSecondScan(
  { random, version }: Drawing,
  page: { readonly reverse: boolean; readonly limit: number; readonly isPaged: boolean },
): TableRead {
  if (version === 1) return { kind: 'scan', table: 'Visit', query: {}, ...page }
  return random.chance(500_000)
    ? { kind: 'scan', table: 'Review', query: { review: drawBounds(random, 1, 4) }, ...page }
    : { ...buildIndexScan('Review', 'ReviewsByText', random), query: {}, ...page }
}

function buildIndexScan(
  table: string,
  index: string,
  random: SeededRandom,
): { kind: 'index'; table: string; index: string; isWithRows: boolean } {
  return { kind: 'index', table, index, isWithRows: random.chance(300_000) }
}

function drawGet({ random, store }: Drawing): TableRead {
  if (random.chance(300_000)) {
    const keys = random.shuffle(shelves).slice(0, random.int(1, 3))
    return { kind: 'get', table: 'Shelf', keys: keys.map((shelf) => ({ store, shelf })) }
  }
  const keys = Array.from({ length: random.int(1, 3) }, () => drawItemKey(random, store))
  return { kind: 'get', table: 'Item', keys }
}

function drawItemKey(random: SeededRandom, store: string): Named {
  return { store, shelf: random.pick(shelves), item: random.pick(items) }
}

function drawItemQuery(random: SeededRandom): Named {
  if (random.chance(250_000)) return {}
  if (random.chance(400_000)) return { shelf: drawBounds(random, random.int(1, 2), 3) }
  const shelf = random.pick(shelves)
  if (random.chance(400_000)) return { shelf }
  const gte = random.pick(items)
  return { shelf, item: random.chance(500_000) ? { gte } : { gte, lt: 'c' } }
}

function drawBounds(random: SeededRandom, gte: number, most: number): Bounds {
  return random.chance(300_000) ? { gte } : { gte, lt: random.int(gte + 1, most + 1) }
}

export const offers = ['offer-a', 'offer-b', 'offer-c'] as const

/** Of rows that expire: made, made anew, changed and taken away while others read them. */
function drawOfferWrite({ random, store }: Drawing): TableWrite {
  const key = { store, offer: random.pick(offers) }
  const who = random.pick(labels)
  switch (random.int(0, 5)) {
    case 0:
      return { kind: 'delete', table: 'Offer', key }
    case 1:
      return { kind: 'update', table: 'Offer', key, patch: { who } }
    case 2:
      return { kind: 'put', table: 'Offer', row: { ...key, who } }
    default:
      return { kind: 'insert', table: 'Offer', row: { ...key, who } }
  }
}

function drawOfferRead(
  { random, store }: Drawing,
  page: { readonly reverse: boolean; readonly limit: number; readonly isPaged: boolean },
): TableRead {
  switch (random.int(0, 2)) {
    case 0: {
      const keys = random.shuffle(offers).slice(0, random.int(1, 3))
      return { kind: 'get', table: 'Offer', keys: keys.map((offer) => ({ store, offer })) }
    }
    case 1:
      return { kind: 'scan', table: 'Offer', query: {}, ...page }
    default: {
      const query = random.chance(half) ? { who: random.pick(labels) } : {}
      return { ...buildIndexScan('Offer', 'OffersByWho', random), query, ...page }
    }
  }
}

function drawWrite(drawing: Drawing): TableWrite {
  const { random, store, version } = drawing
  if (random.chance(150_000)) return drawOfferWrite(drawing)
  if (version === 2 && random.chance(350_000)) return drawSecondWrite(drawing)
  switch (random.int(0, 7)) {
    case 0:
    case 1:
      return { kind: 'insert', table: 'Item', row: drawItem(drawing) }
    case 2:
      return { kind: 'put', table: 'Item', row: drawItem(drawing) }
    case 3:
    case 4:
      return {
        kind: 'update',
        table: 'Item',
        key: drawItemKey(random, store),
        patch: drawPatch(random),
      }
    case 5:
      return { kind: 'delete', table: 'Item', key: drawItemKey(random, store) }
    case 6:
      return drawShelfWrite(drawing)
    default:
      return { kind: 'count', key: { store } }
  }
}

function drawShelfWrite({ random, store }: Drawing): TableWrite {
  const shelf = random.pick(shelves)
  const row = { store, shelf, label: random.pick(labels) }
  switch (random.int(0, 3)) {
    case 0:
      return { kind: 'delete', table: 'Shelf', key: { store, shelf } }
    case 1: {
      const { label } = row
      return { kind: 'update', table: 'Shelf', key: { store, shelf }, patch: { label } }
    }
    default:
      return { kind: 'insert', table: 'Shelf', row }
  }
}

function drawSecondWrite({ random, store }: Drawing): TableWrite {
  if (random.chance(700_000)) {
    const patch = { origin: random.chance(150_000) ? null : random.pick(labels) }
    return { kind: 'update', table: 'Item', key: drawItemKey(random, store), patch }
  }
  const row = { store, review: random.int(1, 4), text: random.pick(labels) }
  return { kind: 'put', table: 'Review', row }
}

function drawItem({ random, store, version }: Drawing): Named {
  return {
    ...drawItemKey(random, store),
    price: random.int(0, pricesMax),
    ...(random.chance(500_000) && { note: random.pick(labels) }),
    ...(random.chance(800_000) && { tag: drawTags(random) }),
    ...(version === 2 && random.chance(800_000) && { origin: random.pick(labels) }),
  }
}

function drawPatch(random: SeededRandom): Named {
  return {
    ...(random.chance(600_000) && { price: random.int(0, pricesMax) }),
    ...(random.chance(400_000) && { tag: drawTags(random) }),
    ...(random.chance(300_000) && { note: random.chance(300_000) ? null : random.pick(labels) }),
  }
}

/** Now and then one twice: the index has one entry for both. */
function drawTags(random: SeededRandom): readonly string[] {
  return Array.from({ length: random.int(0, 3) }, () => random.pick(tags))
}
