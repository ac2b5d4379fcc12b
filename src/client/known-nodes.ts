/**
 * The nodes of a cluster as its nodes have told them: of each replica set the list of the latest epoch that this client has
 * heard of. A list names at most as many nodes as a set may have, and there are at most as many lists as sets
 * (`../wire/client/nodes-codec.ts`), so no teller can make this client keep more than that.
 *
 * MAP-1  Of two lists of a set the one of the later epoch counts, in whatever order they come. Of one epoch the first list to
 *        come counts, but an address that is its node's own word takes the place of another one.
 * MAP-2  A told address is dialled only where it is as safe as those that the application gave: over TLS where one of those is.
 *        It is scheme, host and port, and its host is no address to listen on.
 */
import { assert } from '../base/assert.ts'
import type { ListedNode, SetList } from '../wire/client/client-message.ts'

/** Nodes that have told of their sets, and nodes that lists have named: far more than have links at once. */
const homesMax = 1_024

export class KnownNodes {
  readonly #lists = new Map<number, SetList>()
  /** The sets of the nodes that have told of their own. */
  readonly #homes = new Map<string, number>()
  /** The nodes that any list has named: those that have, or had, a vote. */
  readonly #named = new Set<string>()
  readonly #onlySet: number | undefined
  readonly #isSecure: boolean
  /** The next list counts, whichever epoch it is of. */
  #isStale = false
  #refused = 0

  /** `given`: the addresses of the application. `onlySet`: lists of other sets are passed over. */
  constructor(given: readonly string[], onlySet?: number) {
    this.#isSecure = given.some((url) => url.startsWith('https:'))
    this.#onlySet = onlySet
  }

  /** Whether the next list counts, whichever it is. */
  get isEmpty(): boolean {
    return this.#isStale || this.#lists.size === 0
  }

  /** In the order of the sets' numbers. */
  get lists(): readonly SetList[] {
    return [...this.#lists.values()].toSorted((a, b) => a.set - b.set)
  }

  /** Told addresses that this client does not dial, counted once for each list that brought one. */
  get refused(): number {
    return this.#refused
  }

  /** `teller` has told these lists, first that of its own set. True: they tell this client something new. */
  take(teller: string, sets: readonly SetList[]): boolean {
    const [own] = sets
    if (own === undefined) return false
    if (this.#isStale) this.#forget()
    const isNewHome = this.#homes.get(teller) !== own.set
    this.#homes.delete(teller)
    this.#homes.set(teller, own.set)
    const [oldest] = this.#homes.keys()
    if (this.#homes.size > homesMax && oldest !== undefined) this.#homes.delete(oldest)
    const isOfUse = ({ set }: SetList): boolean =>
      this.#onlySet === undefined || set === this.#onlySet
    const taken = sets.filter(isOfUse).map((list) => this.#take(list))
    return isNewHome || taken.includes(true)
  }

  #forget(): void {
    this.#isStale = false
    this.#lists.clear()
    this.#homes.clear()
    this.#named.clear()
  }

  #take(list: SetList): boolean {
    for (const { node } of list.nodes) this.#note(node)
    const known = this.#lists.get(list.set)
    if (known !== undefined && known.epoch > list.epoch) return false
    // Nodes whose configurations differ would have this client dial one address after the other.
    const isSameEpoch = known?.epoch === list.epoch
    const nodes = isSameEpoch ? known.nodes.map((one) => this.#better(one, list)) : list.nodes
    if (isSameEpoch && nodes.every((one, at) => one === known.nodes[at])) return false
    const isLater = known === undefined || known.epoch < list.epoch
    assert(isLater || isSameEpoch, 'MAP-1: an earlier list takes the place of a later one')
    this.#lists.set(list.set, { ...list, nodes })
    this.#refused += nodes.filter(({ url }) => !this.mayDial(url)).length
    return true
  }

  #note(node: string): void {
    this.#named.delete(node)
    this.#named.add(node)
    const [oldest] = this.#named
    if (this.#named.size > homesMax && oldest !== undefined) this.#named.delete(oldest)
  }

  /** The same node as the other list has it, where that one knows its address better. */
  #better(known: ListedNode, { nodes }: SetList): ListedNode {
    const told = nodes.find(({ node }) => node === known.node)
    if (told === undefined || !this.mayDial(told.url) || told.url === known.url) return known
    return told.isOwnWord === true || !this.mayDial(known.url) ? told : known
  }

  /** This client has no link any more: the lists may be of a cluster that is gone. */
  onAlone(): void {
    this.#isStale = this.#lists.size > 0
  }

  /**
   * Whether the node had a vote in a set, and the set's list does not name it now. A gateway was in none, and no list has named a
   * read-only member: its link stays.
   */
  isRemoved(node: string): boolean {
    if (!this.#named.has(node)) return false
    const home = this.#homes.get(node)
    const list = home === undefined ? undefined : this.#lists.get(home)
    return list !== undefined && !list.nodes.some((one) => one.node === node)
  }

  mayDial(url: string): boolean {
    const read = URL.canParse(url) ? new URL(url) : undefined
    if (read === undefined || read.origin !== url) return false
    const isAllowed = read.protocol === 'https:' || (read.protocol === 'http:' && !this.#isSecure)
    const isNowhere = read.hostname === '0.0.0.0' || read.hostname === '[::]' || read.port === '0'
    return isAllowed && !isNowhere
  }
}
