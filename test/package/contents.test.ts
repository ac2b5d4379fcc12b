/**
 * The content of the package that `npm pack` makes: all that a program or a reader needs, and nothing else.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { beforeAll, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const packedBytesMax = 2_000_000
const unpackedBytesMax = 6_400_000

interface Packed {
  readonly size: number
  readonly unpackedSize: number
  readonly files: readonly { readonly path: string }[]
}

interface Manifest {
  readonly bin: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, string | { readonly types: string; default: string }>>
  readonly scripts: Readonly<Record<string, string>>
  readonly private?: boolean
}

const manifest: Manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
let packed: Packed
let paths: ReadonlySet<string>

beforeAll(() => {
  const flags = ['pack', '--dry-run', '--json', '--ignore-scripts']
  const ran = spawnSync('npm', flags, { cwd: root, encoding: 'utf8', timeout: 60_000 })
  if (ran.status !== 0) throw new Error(`npm pack: ${ran.stderr}`)
  const [only]: Packed[] = JSON.parse(ran.stdout)
  if (only === undefined) throw new Error('npm pack has told of no package')
  packed = only
  paths = new Set(packed.files.map(({ path }) => path))
})

/** Files that these import, and those import, and so on; of declarations the declarations. */
function reached(starts: readonly string[]): ReadonlySet<string> {
  const found = new Set<string>()
  const open = [...starts]
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (found.has(path)) continue
    found.add(path)
    const text = readFileSync(join(root, path), 'utf8').replaceAll(/^\s*\*.*$/gm, '')
    for (const [, name = ''] of text.matchAll(/(?:from|import\(?)\s*['"](\.[^'"]+)['"]/g)) {
      const isDeclared = path.endsWith('.d.ts')
      const file = isDeclared ? name.replace(/\.(js|ts)$/, '.d.ts') : name
      open.push(relative(root, resolve(root, dirname(path), file)))
    }
  }
  return found
}

test('the package has all that its exports and its command import, with their types', () => {
  const starts = [
    ...Object.values(manifest.bin),
    ...Object.values(manifest.exports).flatMap((one) =>
      typeof one === 'string' ? [] : [one.types, one.default],
    ),
    // Started as processes of their own.
    ...['dist/sim/campaign-worker.js', 'dist/src/cli/trigger-worker.js'],
  ]
  const wanted = reached(starts.map((path) => relative(root, resolve(root, path))))
  expect(wanted.size).toBeGreaterThan(500)
  expect([...wanted].filter((path) => !paths.has(path))).toEqual([])
})

test('it has the pages, and each link of a page leads to a file of the repository', () => {
  const pages = [...paths].filter((path) => path.endsWith('.md'))
  expect(pages).toContain('README.md')
  expect(pages).toContain('src/docs/operating.md')
  for (const page of pages) {
    const text = readFileSync(join(root, page), 'utf8')
    for (const [, link = ''] of text.matchAll(/\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g)) {
      const target = resolve(root, dirname(page), link)
      expect(existsSync(target), `${page} links to ${link}`).toBe(true)
      const isPage = link.endsWith('.md') && !link.endsWith('SPEC.md')
      if (isPage) expect(paths.has(relative(root, target)), `${link} is packed`).toBe(true)
    }
  }
})

test('it has nothing that users have no use for, and is small', () => {
  const useless = [...paths].filter(
    (path) =>
      /^(test|bench|sim|\.git)|\.map$|^dist\/(bench|test)|mutant|SPEC\.md$|package-lock|\.tgz$/.test(
        path,
      ) ||
      (path.endsWith('.ts') && !/\.d\.ts$|^schema\/examples\/|^src\/docs\//.test(path)),
  )
  expect(useless).toEqual([])
  expect(packed.size).toBeLessThan(packedBytesMax)
  expect(packed.unpackedSize).toBeLessThan(unpackedBytesMax)
})

test('it may be published, and the two commands of a clone are what they were', () => {
  expect(manifest.private).toBeUndefined()
  expect(manifest.scripts).toMatchObject({
    prestart: 'node .ci/prepare.mjs --build',
    start: 'node dist/src/cli/main.js demo',
    pretest: 'node .ci/prepare.mjs',
    prepare: 'node .ci/prepare.mjs --package',
  })
  expect(paths.has('.ci/prepare.mjs')).toBe(true)
})
