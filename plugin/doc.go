// Package plugin owns the loading of NCCL's plugins: which libraries a variable names, where else the tables of a kind are
// looked for, and the log function that plugins get. What a table does is for the packages below it and beside it: they
// see the newest version of their table only and have one adapter file for each older one.
//
// It must not know communicators, nor what is done with a table.
package plugin
