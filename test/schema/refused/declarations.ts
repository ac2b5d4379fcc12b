/** Declarations that must not compile. `// error:` says which words tsc has for the line below it. */
import { User } from '../../../schema/examples/photos.ts'
import { t } from '../../../schema/property.ts'
import { desc, table } from '../../../schema/table.ts'

const mine = { user_id: t.int64(), nick: t.string().optional(), note: t.json(), size: t.double() }

// A key part that is not there, may be absent, has no order, or rounds.
// error: Argument of type '"user"' is not assignable to parameter of type 'OrDescending<"user_id">'
export const a1 = table('A', mine).key('user')
// error: Argument of type '"nick"' is not assignable to parameter of type 'OrDescending<"user_id">'
export const a2 = table('A', mine).key('nick')
// error: Argument of type '"note"' is not assignable
export const a3 = table('A', mine).key('note')
// error: Argument of type 'Descending<"size">' is not assignable
export const a4 = table('A', mine).key(desc('size'))

// error: Argument of type '"id"' is not assignable
export const a5 = table('A', { id: t.string().default('x'), n: t.int32() }).key('id')

// Steps out of order.
// error: Property 'root' does not exist on type 'UnkeyedTable<
export const b1 = table('A', mine).root()
// error: Property 'localIndex' does not exist on type 'KeyedTable<
export const b2 = table('A', mine).key('user_id').localIndex('I', ['user_id'])
// error: Property 'repeated' does not exist on type 'Declared<"string", "optional"
export const b3 = t.string().optional().repeated()
// error: Property 'optional' does not exist on type 'Declared<"sequence", "required"
export const b4 = t.sequence().optional()

// A key that does not begin with that of the parent, or a parent that is not a root.
const Wrong = table('Wrong', { name: t.string() })
// error: is not assignable to type '"the key of Wrong (string) does not begin with the key of User (int64)"'
export const c1 = Wrong.key('name').in(User)
// error: is not assignable to type '"the key of Wrong (string) does not begin with the key of User (int64)"'
export const c2 = Wrong.key('name').childOf(User)
const Child = table('Child', mine).key('user_id').in(User)
// error: Type 'false' is not assignable to type 'true'
export const c3 = table('D', mine).key('user_id').childOf(Child)

// Indexes over, storing or sharded by what is not there, or has no order.
// error: is not assignable to type 'OrDescending<"nick" | "size" | "user_id">'. Did you mean '"nick"'?
export const d1 = Child.localIndex('I', ['nik'])
// error: Type '"note"' is not assignable to type
export const d2 = Child.localIndex('I', ['note'])
// error: Type '"nik"' is not assignable to type
export const d3 = Child.localIndex('I', ['nick'], { storing: ['nik'] })
// error: Type '"user_id"' is not assignable to type '"nick"'
export const d4 = Child.globalIndex('I', ['nick'], { shardBy: 'user_id' })
// error: 'shards' does not exist in type
export const d5 = Child.localIndex('I', ['nick'], { shards: 4 })

// Defaults: of the property's type, of required properties, of types that have an order.
// error: Argument of type 'number' is not assignable to parameter of type 'bigint'
export const e1 = t.int64().default(1)
// error: Property 'default' does not exist on type 'Declared<"string", "optional"
export const e2 = t.string().optional().default('a')
// error: Property 'default' does not exist on type 'RequiredProperty<"json"
export const e3 = t.json().default({})

// JSON that JSON cannot carry.
// error: JSON has no form for this type
export const f1 = t.json<{ at: Date }>()
