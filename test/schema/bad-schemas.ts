/**
 * Bad schemas, each with one mistake, in both forms. `text` is what stands in the schema below the
 * root table `User`; `tables` are the same in TypeScript, where `@ts-expect-error` marks what tsc
 * refuses already. Some mistakes have no form in TypeScript: there a table cannot name another that
 * was not declared before.
 */
import { t } from '../../schema/property.ts'
import { desc, table, type Table } from '../../schema/table.ts'

export interface BadSchema {
  readonly text: string
  readonly tables?: () => readonly Table[]
  readonly problem: string
}

export const User = table('User', { id: t.int64(), name: t.string() }).key('id').root()
export const userText =
  'CREATE TABLE User { required int64 id; required string name; } PRIMARY KEY(id), ENTITY GROUP ROOT;'

const root = 'ENTITY GROUP ROOT'
export const below = 'IN TABLE User, ENTITY GROUP KEY(id) REFERENCES User'
/** A table `A` of these properties and clauses. */
function a(properties: string, clauses: string): string {
  return `CREATE TABLE A { ${properties} } ${clauses};`
}

const long = 'n'.repeat(65)
/** Half as many characters as a default may have. */
const halfWide = '\u00e9'.repeat(512)
const parts = Array.from({ length: 17 }, (_, index) => `p${index}`)

export const names: Readonly<Record<string, BadSchema>> = {
  'a name that is none': {
    text: a('required string full-url;', `PRIMARY KEY(full-url), ${root}`),
    tables: () => [table('A', { 'full-url': t.string() }).key('full-url').root()],
    problem:
      'table A: property "full-url" is not a name; a name is a letter and then letters, digits and _',
  },
  'a word of the language': {
    text: a('required string table;', `PRIMARY KEY(table), ${root}`),
    tables: () => [table('A', { table: t.string() }).key('table').root()],
    problem: 'table A: property table is a word of the schema language',
  },
  'a name that objects have': {
    text: a('required string id; optional string constructor;', `PRIMARY KEY(id), ${root}`),
    tables: () => [
      table('A', { id: t.string(), constructor: t.string().optional() }).key('id').root(),
    ],
    problem:
      'table A: property constructor is a name that every JavaScript object has or is asked for',
  },
  'a name without end': {
    text: a(`required string ${long};`, `PRIMARY KEY(${long}), ${root}`),
    tables: () => [
      table('A', { [long]: t.string() })
        .key(long)
        .root(),
    ],
    problem: `table A: property ${long} has 65 characters, at most 64`,
  },
  'two properties that differ in capital letters': {
    text: a('required string id; required string ID;', `PRIMARY KEY(id), ${root}`),
    tables: () => [table('A', { id: t.string(), ID: t.string() }).key('id').root()],
    problem: 'table A: property ID and property id differ only in capital letters',
  },
  'two properties of one name': {
    text: a('required string id; required string id;', `PRIMARY KEY(id), ${root}`),
    problem: 'table A: there are two of the name id',
  },
  'two tables of one name': {
    text: userText,
    tables: () => [User],
    problem: 'there are two of the name User',
  },
  'an index of a table’s name': {
    text: `${a('required string id;', `PRIMARY KEY(id), ${root}`)} CREATE LOCAL INDEX User ON A(id);`,
    tables: () => [table('A', { id: t.string() }).key('id').root().localIndex('User', ['id'])],
    problem: 'there are a table and an index of the name User',
  },
  'a message without fields': {
    text: a('required string id; optional message m { }', `PRIMARY KEY(id), ${root}`),
    tables: () => [
      table('A', { id: t.string(), m: t.message({}).optional() })
        .key('id')
        .root(),
    ],
    problem: 'table A: message m: has no fields',
  },
}

export const defaults: Readonly<Record<string, BadSchema>> = {
  'a default that does not fit': {
    text: a('required string id; required int32 n DEFAULT 2.5;', `PRIMARY KEY(id), ${root}`),
    tables: () => [
      table('A', { id: t.string(), n: t.int32().default(2.5) })
        .key('id')
        .root(),
    ],
    problem:
      'table A: the default 2.5 of n does not fit int32; it is a whole number from -2147483648 to 2147483647',
  },
  'a default of half a character': {
    text: a(
      'required string id; required string s DEFAULT "x\\ud800";',
      `PRIMARY KEY(id), ${root}`,
    ),
    tables: () => [
      table('A', { id: t.string(), s: t.string().default('x\ud800') })
        .key('id')
        .root(),
    ],
    problem:
      'table A: the default "x\\ud800" of s does not fit string; it is a text in quotes, of whole characters',
  },
  'a default that no entry of an index has room for': {
    text: `${a(`required string id; required string s DEFAULT "${halfWide}";`, `PRIMARY KEY(id), ${root}`)} CREATE LOCAL INDEX I ON A(s);`,
    tables: () => [
      table('A', { id: t.string(), s: t.string().default(halfWide) })
        .key('id')
        .root()
        .localIndex('I', ['s']),
    ],
    problem: 'index I: the defaults of what it is over have 1024 bytes, and an entry at most 1024',
  },
  'a default of another type, in a message': {
    text: a(
      'required string id; optional message m { required uuid u DEFAULT "U"; }',
      `PRIMARY KEY(id), ${root}`,
    ),
    tables: () => [
      // @ts-expect-error -- no UUID
      table('A', { id: t.string(), m: t.message({ u: t.uuid().default('U') }).optional() })
        .key('id')
        .root(),
    ],
    problem:
      'table A: the default "U" of m.u does not fit uuid; it is a UUID in small letters, in quotes',
  },
  'a default of a part of the key': {
    text: a('required string id DEFAULT "x";', `PRIMARY KEY(id), ${root}`),
    tables: () => {
      const A = table('A', { id: t.string().default('x') })
      // @ts-expect-error -- filled
      return [A.key('id').root()]
    },
    problem:
      'table A: id is in the primary key and has a default; leave it out: whoever writes a row names it',
  },
  'a default of an optional property': {
    text: a('required string id; optional string s DEFAULT "x";', `PRIMARY KEY(id), ${root}`),
    problem:
      'table A: s is optional and has a default; a default is of required properties: the others may be absent',
  },
}

export const keys: Readonly<Record<string, BadSchema>> = {
  'no primary key': {
    text: a('optional string s; required string id;', root),
    problem: 'table A: has no primary key; add PRIMARY KEY(id)',
  },
  'a primary key of nothing': {
    text: a('required string id;', `PRIMARY KEY(), ${root}`),
    tables: () => [table('A', { id: t.string() }).key().root()],
    problem: 'table A: its primary key has no parts',
  },
  'a primary key without end': {
    text: a(
      parts.map((name) => `required string ${name};`).join(' '),
      `PRIMARY KEY(${parts.join()}), ${root}`,
    ),
    tables: () => {
      const properties = Object.fromEntries(parts.map((name) => [name, t.string()]))
      return [
        table('A', properties)
          .key(...parts)
          .root(),
      ]
    },
    problem: 'table A: its primary key has 17 parts, at most 16',
  },
  'a key part that is not there': {
    text: a('required string title;', `PRIMARY KEY(titel), ${root}`),
    // @ts-expect-error -- no such property
    tables: () => [table('A', { title: t.string() }).key('titel').root()],
    problem:
      'table A: titel, a part of its primary key, is not one of its properties; did you mean title?',
  },
  'a key part twice': {
    text: a('required string id;', `PRIMARY KEY(id, id), ${root}`),
    tables: () => [table('A', { id: t.string() }).key('id', 'id').root()],
    problem: 'table A: id is in its primary key twice',
  },
  'a key part that may be absent': {
    text: a('optional string id;', `PRIMARY KEY(id), ${root}`),
    // @ts-expect-error -- optional
    tables: () => [table('A', { id: t.string().optional() }).key('id').root()],
    problem:
      'table A: id cannot be in the primary key: it is optional; make it required: a row has one key, always',
  },
  'a key part that is a list': {
    text: a('repeated string id;', `PRIMARY KEY(id), ${root}`),
    // @ts-expect-error -- repeated
    tables: () => [table('A', { id: t.string().repeated() }).key('id').root()],
    problem:
      'table A: id cannot be in the primary key: it is repeated; make it required: a row has one key, always',
  },
  'a key part without an order': {
    text: a('required json id;', `PRIMARY KEY(id), ${root}`),
    // @ts-expect-error -- json
    tables: () => [table('A', { id: t.json() }).key('id').root()],
    problem:
      'table A: id cannot be in the primary key: it is json, which has no order; use a property of another type',
  },
  'a key part that rounds': {
    text: a('required double id;', `PRIMARY KEY(id), ${root}`),
    // @ts-expect-error -- double
    tables: () => [table('A', { id: t.double() }).key('id').root()],
    problem:
      'table A: id cannot be in the primary key: it is a double, and rounding would make two keys of one; use int64, integer or string for id',
  },
  'a key part that is a message': {
    text: a('required message id { required string s; }', `PRIMARY KEY(id), ${root}`),
    tables: () => {
      const A = table('A', { id: t.message({ s: t.string() }) })
      // @ts-expect-error -- message
      return [A.key('id').root()]
    },
    problem:
      'table A: id cannot be in the primary key: it is a message; make a property of the field that tells rows apart',
  },
  'DESC of a key that is scattered': {
    text: a('required int64 id;', `PRIMARY KEY(id DESC) SCATTER, ${root}`),
    tables: () => [table('A', { id: t.int64() }).key(desc('id')).root({ scatter: true })],
    problem:
      'table A: SCATTER leaves no order for DESC of id to turn around; leave one of them out',
  },
  'SCATTER of a child': {
    text: a('required int64 id;', `PRIMARY KEY(id) SCATTER, ${below}`),
    problem: 'table A: SCATTER is of the keys of root tables; the rows of a group stay together',
  },
}

export const sequences: Readonly<Record<string, BadSchema>> = {
  'a sequence in a root table': {
    text: a('required string id; required sequence n;', `PRIMARY KEY(id), ${root}`),
    tables: () => [table('A', { id: t.string(), n: t.sequence() }).key('id').root()],
    problem:
      'table A: sequence n is in a root table; a sequence counts rows of a group, and a group has one root row',
  },
  'a sequence before other parts of the key': {
    text: a(
      'required int64 id; required sequence n; required string s;',
      `PRIMARY KEY(id, n, s), ${below}`,
    ),
    tables: () => [
      table('A', { id: t.int64(), n: t.sequence(), s: t.string() }).key('id', 'n', 's').in(User),
    ],
    problem:
      'table A: sequence n is not the last part of the primary key; its number is known only when the row is committed',
  },
  'a sequence in descending order': {
    text: a('required int64 id; required sequence n;', `PRIMARY KEY(id, n DESC), ${below}`),
    tables: () => [table('A', { id: t.int64(), n: t.sequence() }).key('id', desc('n')).in(User)],
    problem:
      'table A: sequence n is DESC, and numbers are given in ascending order; leave DESC out and scan in reverse',
  },
  'two sequences': {
    text: a(
      'required int64 id; required sequence n; required sequence m;',
      `PRIMARY KEY(id, n), ${below}`,
    ),
    tables: () => [
      table('A', { id: t.int64(), n: t.sequence(), m: t.sequence() }).key('id', 'n').in(User),
    ],
    problem:
      'table A: sequence m is a second one, after n; a table has one sequence: its rows are counted once',
  },
  'a sequence inside a message': {
    text: a(
      'required int64 id; optional message m { required sequence n; }',
      `PRIMARY KEY(id), ${below}`,
    ),
    tables: () => [
      table('A', { id: t.int64(), m: t.message({ n: t.sequence() }).optional() })
        .key('id')
        .in(User),
    ],
    problem: 'table A: m.n is a sequence inside a message; make it a property of the table',
  },
}

export const wide = table('Wide', { id: t.int64(), at: t.int64() }).key(desc('id'), 'at').root()
export const wideText =
  'CREATE TABLE Wide { required int64 id; required int64 at; } PRIMARY KEY(id DESC, at), ENTITY GROUP ROOT;'
const child = table('Child', { id: t.int64(), at: t.int64() }).key('id', desc('at')).in(User)
const childText = `CREATE TABLE Child { required int64 id; required int64 at; } PRIMARY KEY(id, at DESC), ${below};`

export const groups: Readonly<Record<string, BadSchema>> = {
  'neither a root nor a child': {
    text: a('required int64 id;', 'PRIMARY KEY(id)'),
    problem:
      'table A: is neither an ENTITY GROUP ROOT nor has an ENTITY GROUP KEY; add ENTITY GROUP ROOT or ENTITY GROUP KEY(id) REFERENCES User',
  },
  'a root that says what becomes of it below': {
    text: a('required int64 id;', `PRIMARY KEY(id), ${root}, ON DELETE CASCADE`),
    problem:
      'table A: is an ENTITY GROUP ROOT and has ON DELETE CASCADE; it says what becomes of rows below another row; say it of the tables below this one',
  },
  'a root and a child at once': {
    text: a('required int64 id;', `PRIMARY KEY(id), ${root}, ENTITY GROUP KEY(id) REFERENCES User`),
    problem: 'table A: is an ENTITY GROUP ROOT and has an ENTITY GROUP KEY; leave one of them out',
  },
  'a root that is not in the schema': {
    text: a(
      'required int64 id; required int64 at;',
      'PRIMARY KEY(id, at), ENTITY GROUP KEY(id, at) REFERENCES Wide',
    ),
    tables: () => [table('A', { id: t.int64(), at: t.int64() }).key('id', 'at').childOf(wide)],
    problem: 'table A: REFERENCES Wide, which is not a table; there is User, A',
  },
  'a child as a root': {
    text: `${childText} ${a('required int64 id; required int64 at;', 'PRIMARY KEY(id, at DESC), ENTITY GROUP KEY(id, at) REFERENCES Child')}`,
    tables: () => [
      child,
      // @ts-expect-error -- no root
      table('A', { id: t.int64(), at: t.int64() }).key('id', desc('at')).childOf(child),
    ],
    problem: 'table A: REFERENCES Child, which is not an ENTITY GROUP ROOT; its root is User',
  },
  'a table as its own root': {
    text: a('required int64 id;', 'PRIMARY KEY(id), ENTITY GROUP KEY(id) REFERENCES A'),
    problem: 'table A: REFERENCES A, which is not an ENTITY GROUP ROOT',
  },
  'a group key of another type': {
    text: a('required string id;', 'PRIMARY KEY(id), ENTITY GROUP KEY(id) REFERENCES User'),
    // @ts-expect-error -- string and int64
    tables: () => [table('A', { id: t.string() }).key('id').childOf(User)],
    problem: 'table A: id is string and names a row of User; the key of User is (int64 id)',
  },
  'a group key that is too short': {
    text: `${wideText} ${a('required int64 id;', 'PRIMARY KEY(id DESC), ENTITY GROUP KEY(id) REFERENCES Wide')}`,
    // @ts-expect-error -- one part of two
    tables: () => [wide, table('A', { id: t.int64() }).key(desc('id')).childOf(wide)],
    problem:
      'table A: ENTITY GROUP KEY(id) does not name a row of Wide; the key of Wide is (int64 id DESC, int64 at)',
  },
  'a group key that is not at the start': {
    text: a(
      'required int64 id; required int64 at;',
      'PRIMARY KEY(at, id), ENTITY GROUP KEY(id) REFERENCES User',
    ),
    problem:
      'table A: the primary key (int64 at, int64 id) does not begin with the ENTITY GROUP KEY(id); rows of a group are found by it, so it comes first',
  },
  'a group key that is no property': {
    text: a('required int64 id;', 'PRIMARY KEY(id), ENTITY GROUP KEY(ib) REFERENCES User'),
    problem:
      'table A: ib, a part of its ENTITY GROUP KEY, is not one of its properties; did you mean id?',
  },
  'a group key in another direction than the root’s': {
    text: `${wideText} ${a('required int64 id; required int64 at;', 'PRIMARY KEY(id, at), ENTITY GROUP KEY(id, at) REFERENCES Wide')}`,
    tables: () => [
      wide,
      table('A', { id: t.int64(), at: t.int64() }).key('id', 'at').childOf(wide),
    ],
    problem: 'table A: id is ascending here and not in Wide; it is the same in all rows of a group',
  },
  'a parent that is not there': {
    text: a(
      'required int64 id;',
      'PRIMARY KEY(id), IN TABLE Usr, ENTITY GROUP KEY(id) REFERENCES User',
    ),
    problem: 'table A: is IN TABLE Usr, which is not a table; did you mean User?',
  },
  'a parent of another root': {
    text: `${wideText} ${a('required int64 id;', 'PRIMARY KEY(id), IN TABLE Wide, ENTITY GROUP KEY(id) REFERENCES User')}`,
    problem:
      'table A: its root is User, and it is IN TABLE Wide of root Wide; a row and the row it stands next to are of one group',
  },
  'a key that does not begin with the parent’s': {
    text: `${childText} ${a('required int64 id; required string s;', 'PRIMARY KEY(id, s), IN TABLE Child, ENTITY GROUP KEY(id) REFERENCES User')}`,
    tables: () => [
      child,
      // @ts-expect-error -- string and int64
      table('A', { id: t.int64(), s: t.string() }).key('id', 's').in(child),
    ],
    problem:
      'table A: its key (int64 id, string s) does not begin with the key of Child; the key of Child is (int64 id, int64 at DESC)',
  },
  'a key in another direction than the parent’s': {
    text: `${childText} ${a('required int64 id; required int64 at;', 'PRIMARY KEY(id, at), IN TABLE Child, ENTITY GROUP KEY(id) REFERENCES User')}`,
    tables: () => [child, table('A', { id: t.int64(), at: t.int64() }).key('id', 'at').in(child)],
    problem: 'table A: at is ascending and at of Child is DESC; rows IN TABLE stand in one order',
  },
  'a table in itself': {
    text: a(
      'required int64 id;',
      'PRIMARY KEY(id), IN TABLE A, ENTITY GROUP KEY(id) REFERENCES User',
    ),
    problem: 'table A: lies in itself: A in A',
  },
}

export const expiries: Readonly<Record<string, BadSchema>> = {
  'a table that expires by a property that it has not': {
    text: a(
      'required int64 id; optional timestamp ends;',
      `PRIMARY KEY(id), ${root}, EXPIRES AT end`,
    ),
    tables: () => [
      table('A', { id: t.int64(), ends: t.timestamp().optional() })
        .key('id')
        // @ts-expect-error -- no property of this name
        .root({ expiresAt: 'end' }),
    ],
    problem: 'table A: EXPIRES AT end, which is not one of its properties; did you mean ends?',
  },
  'a table that expires by a property of another type': {
    text: a('required int64 id;', `PRIMARY KEY(id), ${root}, EXPIRES AT id`),
    tables: () => [
      // @ts-expect-error -- no timestamp
      table('A', { id: t.int64() }).key('id').root({ expiresAt: 'id' }),
    ],
    problem:
      'table A: EXPIRES AT id, which is of type int64; a row expires at one moment: name a timestamp, required or optional',
  },
  'a table that expires at once': {
    text: a('required int64 id;', `PRIMARY KEY(id), ${root}, TTL 0 DAYS`),
    tables: () => [table('A', { id: t.int64() }).key('id').root({ ttl: '0 days' })],
    problem: 'table A: its TTL is 0 seconds; expected 1 second to 36500 days',
  },
}
