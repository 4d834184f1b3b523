"builtin.module"() <{sym_name = "jit_attention"}> ({
  "func.func"() <{function_type = (tensor<2x6x8xf64>, tensor<8x24xf64>) -> tensor<2x6x8xf64>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg13: tensor<2x6x8xf64>, %arg14: tensor<8x24xf64>):
    %36 = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<f64>}> : () -> tensor<f64>
    %37 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %38 = "stablehlo.constant"() <{value = dense<0.79788456080286541> : tensor<f64>}> : () -> tensor<f64>
    %39 = "stablehlo.constant"() <{value = dense<4.471500e-02> : tensor<f64>}> : () -> tensor<f64>
    %40 = "stablehlo.constant"() <{value = dense<1.000000e-05> : tensor<f64>}> : () -> tensor<f64>
    %41 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %42 = "stablehlo.constant"() <{value = dense<8.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %43 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %44 = "stablehlo.constant"() <{value = dense<0xFFF0000000000000> : tensor<f64>}> : () -> tensor<f64>
    %45 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %46 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %47 = "stablehlo.dot_general"(%arg13, %arg14) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<2x6x8xf64>, tensor<8x24xf64>) -> tensor<2x6x24xf64>
    %48 = "stablehlo.slice"(%47) <{limit_indices = array<i64: 2, 6, 8>, start_indices = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>}> : (tensor<2x6x24xf64>) -> tensor<2x6x8xf64>
    %49 = "stablehlo.slice"(%47) <{limit_indices = array<i64: 2, 6, 16>, start_indices = array<i64: 0, 0, 8>, strides = array<i64: 1, 1, 1>}> : (tensor<2x6x24xf64>) -> tensor<2x6x8xf64>
    %50 = "stablehlo.slice"(%47) <{limit_indices = array<i64: 2, 6, 24>, start_indices = array<i64: 0, 0, 16>, strides = array<i64: 1, 1, 1>}> : (tensor<2x6x24xf64>) -> tensor<2x6x8xf64>
    %51 = "stablehlo.reshape"(%48) : (tensor<2x6x8xf64>) -> tensor<2x6x2x4xf64>
    %52 = "stablehlo.transpose"(%51) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x6x2x4xf64>) -> tensor<2x2x6x4xf64>
    %53 = "stablehlo.reshape"(%49) : (tensor<2x6x8xf64>) -> tensor<2x6x2x4xf64>
    %54 = "stablehlo.transpose"(%53) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x6x2x4xf64>) -> tensor<2x2x6x4xf64>
    %55 = "stablehlo.reshape"(%50) : (tensor<2x6x8xf64>) -> tensor<2x6x2x4xf64>
    %56 = "stablehlo.transpose"(%55) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x6x2x4xf64>) -> tensor<2x2x6x4xf64>
    %57 = "stablehlo.dot_general"(%52, %54) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [3]>}> : (tensor<2x2x6x4xf64>, tensor<2x2x6x4xf64>) -> tensor<2x2x6x6xf64>
    %58 = "stablehlo.broadcast_in_dim"(%46) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<2x2x6x6xf64>
    %59 = "stablehlo.divide"(%57, %58) : (tensor<2x2x6x6xf64>, tensor<2x2x6x6xf64>) -> tensor<2x2x6x6xf64>
    %60 = "stablehlo.broadcast_in_dim"(%45) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<6x6xi1>
    %61 = "func.call"(%60) <{callee = @tril}> : (tensor<6x6xi1>) -> tensor<6x6xi1>
    %62 = "func.call"(%61, %59, %44) <{callee = @_where}> : (tensor<6x6xi1>, tensor<2x2x6x6xf64>, tensor<f64>) -> tensor<2x2x6x6xf64>
    %63 = "stablehlo.reduce"(%62, %44) <{dimensions = array<i64: 3>}> ({
    ^bb0(%arg19: tensor<f64>, %arg20: tensor<f64>):
      %104 = "stablehlo.maximum"(%arg19, %arg20) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      "stablehlo.return"(%104) : (tensor<f64>) -> ()
    }) : (tensor<2x2x6x6xf64>, tensor<f64>) -> tensor<2x2x6xf64>
    %64 = "stablehlo.broadcast_in_dim"(%44) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<2x2x6xf64>
    %65 = "stablehlo.maximum"(%64, %63) : (tensor<2x2x6xf64>, tensor<2x2x6xf64>) -> tensor<2x2x6xf64>
    %66 = "stablehlo.broadcast_in_dim"(%65) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x2x6xf64>) -> tensor<2x2x6x1xf64>
    %67 = "stablehlo.broadcast_in_dim"(%66) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<2x2x6x1xf64>) -> tensor<2x2x6x6xf64>
    %68 = "stablehlo.subtract"(%62, %67) : (tensor<2x2x6x6xf64>, tensor<2x2x6x6xf64>) -> tensor<2x2x6x6xf64>
    %69 = "stablehlo.exponential"(%68) : (tensor<2x2x6x6xf64>) -> tensor<2x2x6x6xf64>
    %70 = "stablehlo.reduce"(%69, %43) <{dimensions = array<i64: 3>}> ({
    ^bb0(%arg17: tensor<f64>, %arg18: tensor<f64>):
      %103 = "stablehlo.add"(%arg17, %arg18) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      "stablehlo.return"(%103) : (tensor<f64>) -> ()
    }) : (tensor<2x2x6x6xf64>, tensor<f64>) -> tensor<2x2x6xf64>
    %71 = "stablehlo.broadcast_in_dim"(%70) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x2x6xf64>) -> tensor<2x2x6x1xf64>
    %72 = "stablehlo.broadcast_in_dim"(%71) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<2x2x6x1xf64>) -> tensor<2x2x6x6xf64>
    %73 = "stablehlo.divide"(%69, %72) : (tensor<2x2x6x6xf64>, tensor<2x2x6x6xf64>) -> tensor<2x2x6x6xf64>
    %74 = "stablehlo.dot_general"(%56, %73) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [3]>}> : (tensor<2x2x6x4xf64>, tensor<2x2x6x6xf64>) -> tensor<2x2x4x6xf64>
    %75 = "stablehlo.transpose"(%74) <{permutation = array<i64: 0, 3, 1, 2>}> : (tensor<2x2x4x6xf64>) -> tensor<2x6x2x4xf64>
    %76 = "stablehlo.reshape"(%75) : (tensor<2x6x2x4xf64>) -> tensor<2x6x8xf64>
    %77 = "stablehlo.reduce"(%76, %43) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg15: tensor<f64>, %arg16: tensor<f64>):
      %102 = "stablehlo.add"(%arg15, %arg16) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      "stablehlo.return"(%102) : (tensor<f64>) -> ()
    }) : (tensor<2x6x8xf64>, tensor<f64>) -> tensor<2x6xf64>
    %78 = "stablehlo.broadcast_in_dim"(%77) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x6xf64>) -> tensor<2x6x1xf64>
    %79 = "stablehlo.broadcast_in_dim"(%42) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<2x6x1xf64>
    %80 = "stablehlo.divide"(%78, %79) : (tensor<2x6x1xf64>, tensor<2x6x1xf64>) -> tensor<2x6x1xf64>
    %81 = "stablehlo.broadcast_in_dim"(%80) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x6x1xf64>) -> tensor<2x6x8xf64>
    %82 = "stablehlo.subtract"(%76, %81) : (tensor<2x6x8xf64>, tensor<2x6x8xf64>) -> tensor<2x6x8xf64>
    %83 = "func.call"(%76, %41) <{callee = @_var}> : (tensor<2x6x8xf64>, tensor<i64>) -> tensor<2x6x1xf64>
    %84 = "stablehlo.broadcast_in_dim"(%40) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<2x6x1xf64>
    %85 = "stablehlo.add"(%83, %84) : (tensor<2x6x1xf64>, tensor<2x6x1xf64>) -> tensor<2x6x1xf64>
    %86 = "stablehlo.sqrt"(%85) : (tensor<2x6x1xf64>) -> tensor<2x6x1xf64>
    %87 = "stablehlo.broadcast_in_dim"(%86) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x6x1xf64>) -> tensor<2x6x8xf64>
    %88 = "stablehlo.divide"(%82, %87) : (tensor<2x6x8xf64>, tensor<2x6x8xf64>) -> tensor<2x6x8xf64>
    %89 = "stablehlo.multiply"(%88, %88) : (tensor<2x6x8xf64>, tensor<2x6x8xf64>) -> tensor<2x6x8xf64>
    %90 = "stablehlo.multiply"(%89, %88) : (tensor<2x6x8xf64>, tensor<2x6x8xf64>) -> tensor<2x6x8xf64>
    %91 = "stablehlo.broadcast_in_dim"(%39) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<2x6x8xf64>
    %92 = "stablehlo.multiply"(%91, %90) : (tensor<2x6x8xf64>, tensor<2x6x8xf64>) -> tensor<2x6x8xf64>
    %93 = "stablehlo.add"(%88, %92) : (tensor<2x6x8xf64>, tensor<2x6x8xf64>) -> tensor<2x6x8xf64>
    %94 = "stablehlo.broadcast_in_dim"(%38) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<2x6x8xf64>
    %95 = "stablehlo.multiply"(%94, %93) : (tensor<2x6x8xf64>, tensor<2x6x8xf64>) -> tensor<2x6x8xf64>
    %96 = "stablehlo.tanh"(%95) : (tensor<2x6x8xf64>) -> tensor<2x6x8xf64>
    %97 = "stablehlo.broadcast_in_dim"(%37) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<2x6x8xf64>
    %98 = "stablehlo.add"(%97, %96) : (tensor<2x6x8xf64>, tensor<2x6x8xf64>) -> tensor<2x6x8xf64>
    %99 = "stablehlo.broadcast_in_dim"(%36) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<2x6x8xf64>
    %100 = "stablehlo.multiply"(%99, %98) : (tensor<2x6x8xf64>, tensor<2x6x8xf64>) -> tensor<2x6x8xf64>
    %101 = "stablehlo.multiply"(%88, %100) : (tensor<2x6x8xf64>, tensor<2x6x8xf64>) -> tensor<2x6x8xf64>
    "func.return"(%101) : (tensor<2x6x8xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<6x6xi1>) -> tensor<6x6xi1>, sym_name = "tril", sym_visibility = "private"}> ({
  ^bb0(%arg12: tensor<6x6xi1>):
    %27 = "stablehlo.constant"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
    %28 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %29 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<6x6xi64>
    %30 = "stablehlo.broadcast_in_dim"(%28) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<6x6xi64>
    %31 = "stablehlo.add"(%29, %30) : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi64>
    %32 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<6x6xi64>
    %33 = "stablehlo.compare"(%31, %32) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
    %34 = "stablehlo.broadcast_in_dim"(%27) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<6x6xi1>
    %35 = "stablehlo.select"(%33, %arg12, %34) : (tensor<6x6xi1>, tensor<6x6xi1>, tensor<6x6xi1>) -> tensor<6x6xi1>
    "func.return"(%35) : (tensor<6x6xi1>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<6x6xi1>, tensor<2x2x6x6xf64>, tensor<f64>) -> tensor<2x2x6x6xf64>, sym_name = "_where", sym_visibility = "private"}> ({
  ^bb0(%arg9: tensor<6x6xi1>, %arg10: tensor<2x2x6x6xf64>, %arg11: tensor<f64>):
    %23 = "stablehlo.convert"(%arg11) : (tensor<f64>) -> tensor<f64>
    %24 = "stablehlo.broadcast_in_dim"(%arg9) <{broadcast_dimensions = array<i64: 2, 3>}> : (tensor<6x6xi1>) -> tensor<2x2x6x6xi1>
    %25 = "stablehlo.broadcast_in_dim"(%23) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<2x2x6x6xf64>
    %26 = "stablehlo.select"(%24, %arg10, %25) : (tensor<2x2x6x6xi1>, tensor<2x2x6x6xf64>, tensor<2x2x6x6xf64>) -> tensor<2x2x6x6xf64>
    "func.return"(%26) : (tensor<2x2x6x6xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x6x8xf64>, tensor<i64>) -> tensor<2x6x1xf64>, sym_name = "_var", sym_visibility = "private"}> ({
  ^bb0(%arg3: tensor<2x6x8xf64>, %arg4: tensor<i64>):
    %3 = "stablehlo.constant"() <{value = dense<0x7FF8000000000000> : tensor<f64>}> : () -> tensor<f64>
    %4 = "stablehlo.constant"() <{value = dense<8.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %5 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %6 = "stablehlo.reduce"(%arg3, %5) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg7: tensor<f64>, %arg8: tensor<f64>):
      %22 = "stablehlo.add"(%arg7, %arg8) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      "stablehlo.return"(%22) : (tensor<f64>) -> ()
    }) : (tensor<2x6x8xf64>, tensor<f64>) -> tensor<2x6xf64>
    %7 = "stablehlo.broadcast_in_dim"(%6) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x6xf64>) -> tensor<2x6x1xf64>
    %8 = "stablehlo.broadcast_in_dim"(%4) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<2x6x1xf64>
    %9 = "stablehlo.divide"(%7, %8) : (tensor<2x6x1xf64>, tensor<2x6x1xf64>) -> tensor<2x6x1xf64>
    %10 = "stablehlo.broadcast_in_dim"(%9) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x6x1xf64>) -> tensor<2x6x8xf64>
    %11 = "stablehlo.subtract"(%arg3, %10) : (tensor<2x6x8xf64>, tensor<2x6x8xf64>) -> tensor<2x6x8xf64>
    %12 = "stablehlo.multiply"(%11, %11) : (tensor<2x6x8xf64>, tensor<2x6x8xf64>) -> tensor<2x6x8xf64>
    %13 = "stablehlo.convert"(%arg4) : (tensor<i64>) -> tensor<f64>
    %14 = "stablehlo.subtract"(%4, %13) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %15 = "stablehlo.reduce"(%12, %5) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg5: tensor<f64>, %arg6: tensor<f64>):
      %21 = "stablehlo.add"(%arg5, %arg6) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      "stablehlo.return"(%21) : (tensor<f64>) -> ()
    }) : (tensor<2x6x8xf64>, tensor<f64>) -> tensor<2x6xf64>
    %16 = "stablehlo.broadcast_in_dim"(%15) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x6xf64>) -> tensor<2x6x1xf64>
    %17 = "stablehlo.broadcast_in_dim"(%14) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<2x6x1xf64>
    %18 = "stablehlo.divide"(%16, %17) : (tensor<2x6x1xf64>, tensor<2x6x1xf64>) -> tensor<2x6x1xf64>
    %19 = "stablehlo.compare"(%14, %5) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %20 = "func.call"(%19, %18, %3) <{callee = @_where_0}> : (tensor<i1>, tensor<2x6x1xf64>, tensor<f64>) -> tensor<2x6x1xf64>
    "func.return"(%20) : (tensor<2x6x1xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i1>, tensor<2x6x1xf64>, tensor<f64>) -> tensor<2x6x1xf64>, sym_name = "_where_0", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<i1>, %arg1: tensor<2x6x1xf64>, %arg2: tensor<f64>):
    %0 = "stablehlo.convert"(%arg2) : (tensor<f64>) -> tensor<f64>
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<2x6x1xf64>
    %2 = "stablehlo.select"(%arg0, %arg1, %1) : (tensor<i1>, tensor<2x6x1xf64>, tensor<2x6x1xf64>) -> tensor<2x6x1xf64>
    "func.return"(%2) : (tensor<2x6x1xf64>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
