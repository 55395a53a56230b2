// Each page by the rules of axe-core, light and dark, wide and narrow, and its picture.
export default async ({come, key, admin, account}) => {
	const v = await come()
	await v.go('/sign-in')
	await v.sees('Sign in')
	await v.inspect('sign-in')
	await v.signIn(key)
	for (const [name, to] of [['playground', '/playground?model=alpha-v3'], ['tasks', '/tasks'], ['gallery', '/tasks?view=gallery'], ['keys', '/keys'], ['webhooks', '/webhooks'], ['account', '/account'], ['usage', '/usage']]) {
		await v.go(to)
		await v.settles()
		await v.inspect(name)
	}
	await v.go('/tasks')
	const first = await v.page.waitForSelector('a[href*="/console/tasks/task_"]')
	await v.go(new URL(await first.evaluate(a => a.href)).pathname.replace('/console', ''))
	await v.settles()
	await v.inspect('task')
	await v.leave()

	const operator = await come()
	await operator.signIn(admin)
	for (const [name, to] of [['operator', '/operator?stuck=all'], ['channels', '/operator/channels'], ['accounts', '/operator/accounts'], ['operator-account', `/operator/accounts/${account}`], ['ledger', '/operator/books'], ['audit', '/operator/audit']]) {
		await operator.go(to)
		await operator.settles()
		await operator.inspect(name)
	}
	await operator.leave()
}
