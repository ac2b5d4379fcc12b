/**
 * The form in which a data folder keeps its replica sets: a line for each set, in their order.
 *
 *   main: n1 n2 n3
 *   east@eu: n4 n5 n6
 *
 * A folder of an earlier version has the nodes alone: `n1 n2 n3`. Such a folder has no group with a place in its name. So the
 * first start writes the names and regions that the configuration has then.
 */

export interface KeptSet {
  readonly name: string
  /** Absent: it is in none. */
  readonly region?: string
  /** Those that it began with, in the order of the configuration. */
  readonly nodes: readonly string[]
}

/** Of a line of an earlier version: nodes alone. */
type ReadSet = Partial<KeptSet> & Pick<KeptSet, 'nodes'>

export function keptText(sets: readonly KeptSet[]): string {
  return sets.map((set) => `${siteText(set)}: ${set.nodes.join(' ')}`).join('\n')
}

export function readKept(text: string): readonly ReadSet[] {
  return text.split('\n').map((line) => {
    const [, name, region, nodes = line] = /^([^\s:@]+)(?:@([^\s:@]+))?: (.*)$/.exec(line) ?? []
    return {
      nodes: nodes.split(' '),
      ...(name !== undefined && { name }),
      ...(region !== undefined && { region }),
    }
  })
}

/**
 * Why sets of the same nodes must not get these names and regions. Undefined: they may. A single set holds all groups, and may
 * be named anew. A set may come to a region in which none was, as long as it was in none: no group has a place there yet.
 */
export function refusalOfSites(
  kept: readonly ReadSet[],
  sets: readonly KeptSet[],
): string | undefined {
  if (sets.length === 1) return undefined
  const known = new Set(kept.flatMap(({ region }) => region ?? []))
  for (const [place, set] of sets.entries()) {
    const { name, region } = kept[place] ?? {}
    if (name === undefined) continue
    const isNew = region === undefined && set.region !== undefined && !known.has(set.region)
    if (name === set.name && (region === set.region || isNew)) continue
    const [before, after] = [siteWords(name, region), siteWords(set.name, set.region)]
    return `has ${before}, and the configuration has ${after} for the same nodes; names and regions of replica sets say where groups are, and they stay so: configure ${before}`
  }
  return undefined
}

function siteText({ name, region }: Pick<KeptSet, 'name' | 'region'>): string {
  return region === undefined ? name : `${name}@${region}`
}

function siteWords(name: string, region: string | undefined): string {
  return `set ${name} in ${region === undefined ? 'no region' : `region ${region}`}`
}
