// Browsers that translate a page wrap each of its texts in an element of their own. React does not know these elements:
// it fails when it removes a bare text, or inserts an element before a bare text. So each text that is shown under a
// condition has an element of its own, and so has each text that follows something conditional.
import ts from 'typescript';
import { expect, test } from 'vitest';

const config = ts.getParsedCommandLineOfConfigFile('tsconfig.json', {}, { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => {} });
const program = ts.createProgram(config!.fileNames, config!.options);
const checker = program.getTypeChecker();

// Ignores the falsy "" and 0 before a &&, which show nothing.
const isText = (type: ts.Type) => (type.flags & (ts.TypeFlags.StringLike | ts.TypeFlags.NumberLike)) !== 0 && !(type.isLiteral() && !type.value);
const mayBeText = (node: ts.Expression) => {
  const type = checker.getTypeAtLocation(node);
  return (type.isUnion() ? type.types : [type]).some(isText);
};

/** Whether a condition decides what an expression shows. */
const isConditional = (node: ts.Expression): boolean =>
  ts.isParenthesizedExpression(node) ? isConditional(node.expression) : ts.isConditionalExpression(node) || (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.AmpersandAmpersandToken);

function faultsOf(parent: ts.JsxElement | ts.JsxFragment): ts.Node[] {
  const children = parent.children.filter((child) => (ts.isJsxText(child) ? !child.containsOnlyTriviaWhiteSpaces : !ts.isJsxExpression(child) || child.expression));
  if (ts.isJsxElement(parent) && children.length < 2) return []; // React sets the text of the element itself
  return children.filter((child, i) => {
    if (!ts.isJsxExpression(child) || !child.expression || !isConditional(child.expression)) return false;
    if (mayBeText(child.expression)) return true;
    const next = children[i + 1];
    return next !== undefined && (ts.isJsxText(next) || (ts.isJsxExpression(next) && mayBeText(next.expression!)));
  });
}

test('no bare text comes and goes', { timeout: 300_000 }, () => {
  const found: string[] = [];
  for (const file of program.getSourceFiles()) {
    if (file.isDeclarationFile || !file.fileName.endsWith('.tsx')) continue;
    const visit = (node: ts.Node): void => {
      if (ts.isJsxElement(node) || ts.isJsxFragment(node)) {
        for (const fault of faultsOf(node)) found.push(`${file.fileName.replace(/.*\/src\//, '')}:${file.getLineAndCharacterOfPosition(fault.getStart()).line + 1}: ${fault.getText()}`);
      }
      ts.forEachChild(node, visit);
    };
    visit(file);
  }
  expect(found).toEqual([]);
});
